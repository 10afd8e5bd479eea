package gateway

import (
	"context"
	"log/slog"
	"time"

	"holdfast"
)

// logCall writes one line about a call that ended, and at the level debug one for each attempt, in their order. The record
// must have been cleaned by records.add. No header, no body, no key and no URL is in a line. Times are in seconds, as in the
// reports of the admin listener: what slog makes of a duration depends on the handler.
func logCall(log *slog.Logger, r *Record) {
	if log == nil {
		return
	}
	ctx := context.Background()
	if log.Enabled(ctx, slog.LevelDebug) {
		for _, a := range r.Trace.Attempts() {
			logAttempt(ctx, log, r.ID, &a)
		}
		for _, s := range r.Trace.Skips() {
			log.LogAttrs(ctx, slog.LevelDebug, "target not asked", slog.String("trace", r.ID), slog.String("target", s.Target),
				slog.Float64("after_seconds", seconds(s.After)), slog.String("reason", holdfast.ReasonWord(s.Reason)), slog.Float64("wait_seconds", seconds(s.Wait)))
		}
	}
	level, message := headline(r.Outcome)
	if !log.Enabled(ctx, level) {
		return
	}
	var l line
	l.call(r)
	log.LogAttrs(ctx, level, message, l.attrs...)
}

// headline is how loud a line is, and what it says first. The words are constant, so that lines can be searched for.
func headline(o Outcome) (slog.Level, string) {
	switch o {
	case Answered:
		return slog.LevelInfo, "call answered"
	case Refused:
		return slog.LevelInfo, "call refused by the model"
	case Left:
		return slog.LevelInfo, "caller left"
	case Cut:
		return slog.LevelWarn, "call cut"
	case Rejected:
		return slog.LevelWarn, "call rejected"
	}
	return slog.LevelWarn, "call failed"
}

// line is the fields of a log line. Those that say nothing are left out.
type line struct {
	attrs []slog.Attr
	space [29]slog.Attr
}

func (l *line) call(r *Record) {
	l.attrs = l.space[:0]
	t := &r.Trace
	l.text("trace", r.ID)
	l.text("route", r.Route)
	l.text("client", r.Client)
	l.text("method", r.Method)
	l.text("path", r.Path)
	l.text("model", r.Model)
	l.text("target", r.Target)
	l.attrs = append(l.attrs, slog.Int("status", r.Status), slog.String("outcome", string(r.Outcome)), slog.String("source", r.Source.String()))
	l.attrs = append(l.attrs, slog.Int("attempts", t.Sent()), slog.Float64("elapsed_seconds", seconds(r.Elapsed)))
	l.time("first_content_seconds", r.FirstContent)
	l.time("waited_seconds", t.Waited)
	l.time("paced_seconds", t.Paced)
	if r.Stream {
		l.attrs = append(l.attrs, slog.Bool("stream", true))
	}
	l.attrs = append(l.attrs, slog.Int64("bytes", r.Bytes))
	l.number("input_tokens", r.Input)
	l.number("output_tokens", r.Output)
	l.number("cache_read_tokens", r.CacheRead)
	l.number("cache_write_tokens", r.CacheWrite)
	if r.Partial {
		l.attrs = append(l.attrs, slog.Bool("partial", true))
	}
	l.text("stop_reason", r.StopReason)
	l.number("stacked_retries", r.Stacked)
	if !r.SavedAt.IsZero() {
		l.attrs = append(l.attrs, slog.Time("saved_at", r.SavedAt.UTC()))
	}
	l.text("reason", r.Reason)
	l.text("error", r.Error)
}

func (l *line) text(name, value string) {
	if value != "" {
		l.attrs = append(l.attrs, slog.String(name, value))
	}
}

func (l *line) number(name string, value int) {
	if value != 0 {
		l.attrs = append(l.attrs, slog.Int(name, value))
	}
}

func (l *line) time(name string, value time.Duration) {
	if value > 0 {
		l.attrs = append(l.attrs, slog.Float64(name, seconds(value)))
	}
}

func logAttempt(ctx context.Context, log *slog.Logger, id string, a *holdfast.Attempt) {
	var l line
	l.attrs = l.space[:0]
	v := &a.Verdict
	l.text("trace", id)
	l.number("attempt", a.Number)
	l.text("target", a.Target)
	l.attrs = append(l.attrs, slog.Float64("after_seconds", seconds(a.After)), slog.Float64("took_seconds", seconds(a.Took)), slog.String("verdict", v.Kind.String()))
	l.number("status", v.Status)
	l.text("rule", v.Rule)
	l.text("type", v.Type)
	l.text("code", v.Code)
	l.text("request_id", v.RequestID)
	l.time("server_wait_seconds", v.Wait)
	l.text("next", a.Next.String())
	l.time("wait_seconds", a.Wait)
	log.LogAttrs(ctx, slog.LevelDebug, "attempt", l.attrs...)
}
