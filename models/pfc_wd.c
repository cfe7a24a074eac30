/* SPDX-License-Identifier: BSD-3-Clause */
// The PFC watchdog as SONiC runs it (sonic-swss orchagent/pfc_detect_{broadcom,mellanox,vs}.lua,
// pfc_restore.lua, pfcwdorch.h): counters are read once per POLL_INTERVAL, and
//
//	operational: the poll looks like a storm: time_left <= poll ? stormed : time_left -= poll
//	             it does not:                 time_left = detection_time
//	stormed:     no XOFF since the last poll: time_left <= poll ? restored : time_left -= poll
//	             any XOFF:                    time_left = restoration_time
//
// `poll` is the time since the last poll. What looks like a storm differs by ASIC family, see
// PFC_WD_CONDITIONS. A sender that pauses with gaps (its refresh comes later than its quanta end)
// is a storm to them as follows: broadcom: never, as every gap ends a pause; mellanox: as long as
// the gaps are below 1 % of the time and let no frame out; generic: as long as no frame gets out.
//
// mellanox counts paused time: it fires when more than 99 % of detection_time has accumulated over
// consecutive polls that look like a storm.
//
// With action alert a stormed queue is restored by the first poll that does not look like a storm.
// Under the big red switch nothing is restored.
//
// SONiC's scripts count every PFC frame of the priority on restoring. Here only those that pause
// count: a train of XON frames keeps nothing stormed. The caller must go on counting XOFFs whatever
// its action did to the priority; a counter that stands still because PFC was turned off would
// restore a queue whose storm goes on, and flap.
//
// Invariant: 0 < time_left <= the larger of both times.

#include "models/pfc_wd.h"

#include <stddef.h>

#define PERCENT_MELLANOX 99
#define PERCENT_GENERIC  80

#define X(id, name, help) name,
static const char *const action_names[] = {PFC_WD_ACTIONS(X)};
static const char *const condition_names[] = {PFC_WD_CONDITIONS(X)};
#undef X

const char *pfc_wd_action_name(enum pfc_wd_action action)
{
	return action_names[action];
}

const char *pfc_wd_condition_name(enum pfc_wd_condition condition)
{
	return condition_names[condition];
}

void pfc_wd_init(struct pfc_wd *w, const struct pfc_wd_config *cfg)
{
	*w = (struct pfc_wd){.time_left = cfg->detection_time};
}

// More than `percent` of `whole`.
static bool exceeds(simtime_t part, unsigned percent, simtime_t whole)
{
	return (__int128)part * 100 > (__int128)whole * percent;
}

static bool looks_like_a_storm(const struct pfc_wd *w, enum pfc_wd_condition condition,
	simtime_t elapsed, const struct pfc_wd_sample *s)
{
	const struct pfc_wd_sample *l = &w->last;
	bool still = s->packets == l->packets;
	bool xoffs = s->xoffs != l->xoffs;
	simtime_t paused = s->paused - l->paused;

	switch (condition) {
	case PFC_WD_CONDITION_BROADCOM:
		return xoffs && s->on2off == l->on2off && s->pause_status && l->pause_status;
	case PFC_WD_CONDITION_MELLANOX:
		return s->occupancy_bytes > 0 && still &&
		       exceeds(paused, PERCENT_MELLANOX, elapsed);
	case PFC_WD_CONDITION_GENERIC:
		break;
	}
	if (s->occupancy_bytes > 0)
		return still && xoffs;
	return still && exceeds(paused, PERCENT_GENERIC, elapsed);
}

static bool detected(struct pfc_wd *w, const struct pfc_wd_config *cfg, simtime_t elapsed,
	const struct pfc_wd_sample *s)
{
	if (cfg->condition == PFC_WD_CONDITION_MELLANOX) {
		w->accumulated += s->paused - w->last.paused;
		return exceeds(w->accumulated, PERCENT_MELLANOX, cfg->detection_time);
	}
	if (w->time_left <= elapsed)
		return true;
	w->time_left -= elapsed;
	return false;
}

static void rearm(struct pfc_wd *w, simtime_t time)
{
	w->time_left = time;
	w->accumulated = 0;
}

static enum pfc_wd_verdict operational(struct pfc_wd *w, const struct pfc_wd_config *cfg,
	simtime_t elapsed, const struct pfc_wd_sample *s)
{
	if (!looks_like_a_storm(w, cfg->condition, elapsed, s)) {
		rearm(w, cfg->detection_time);
		return PFC_WD_UNCHANGED;
	}
	if (!detected(w, cfg, elapsed, s))
		return PFC_WD_UNCHANGED;
	w->stormed = true;
	rearm(w, cfg->restoration_time);
	return PFC_WD_DETECTED;
}

static enum pfc_wd_verdict stormed(struct pfc_wd *w, const struct pfc_wd_config *cfg,
	simtime_t elapsed, const struct pfc_wd_sample *s)
{
	if (cfg->big_red_switch)
		return PFC_WD_UNCHANGED;
	if (cfg->action == PFC_WD_ALERT) {
		if (looks_like_a_storm(w, cfg->condition, elapsed, s))
			return PFC_WD_UNCHANGED;
	} else if (s->xoffs != w->last.xoffs) {
		w->time_left = cfg->restoration_time;
		return PFC_WD_UNCHANGED;
	} else if (w->time_left > elapsed) {
		w->time_left -= elapsed;
		return PFC_WD_UNCHANGED;
	}
	w->stormed = false;
	rearm(w, cfg->detection_time);
	return PFC_WD_RESTORED;
}

enum pfc_wd_verdict pfc_wd_poll(struct pfc_wd *w, const struct pfc_wd_config *cfg, simtime_t now,
	const struct pfc_wd_sample *s)
{
	simtime_t elapsed = now - w->last_poll;
	enum pfc_wd_verdict v =
		w->stormed ? stormed(w, cfg, elapsed, s) : operational(w, cfg, elapsed, s);

	w->last_poll = now;
	w->last = *s;
	return v;
}

bool pfc_wd_force(struct pfc_wd *w)
{
	bool was = w->stormed;

	w->stormed = true;
	return !was;
}
