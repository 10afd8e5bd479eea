package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/standin"
)

// summarized is how many requests a summary lists one by one.
const summarized = 20

// account says in a line what arrived, and in a second one what it cost, if anything.
func account(server *standin.Server) string {
	return strings.TrimSuffix(summary(server.Journal())+"\n"+bill(server.Ledger()), "\n")
}

// summary says in one line what arrived.
func summary(j standin.Journal) string {
	return plural(len(j), "request") + series(": ", j, replied) + series("; gaps ", j.Gaps(), seconds)
}

// series lists the first of many things behind an opening, and says how many more there are. "" for none.
func series[T any](opening string, all []T, say func(T) string) string {
	if len(all) == 0 {
		return ""
	}
	said := make([]string, 0, summarized)
	for _, one := range all[:min(len(all), summarized)] {
		said = append(said, say(one))
	}
	line := opening + strings.Join(said, " ")
	if more := len(all) - summarized; more > 0 {
		line += fmt.Sprintf(" and %d more", more)
	}
	return line
}

// bill says in one line what was billed, how much of that twice, and what became of the items of batches. "" for nothing.
func bill(l standin.Ledger) string {
	var parts []string
	if input, output := l.Total.Input+l.Items.Input, l.Total.Output+l.Items.Output; input+output > 0 {
		parts = append(parts, fmt.Sprintf("billed %d input and %s", input, plural(output, "output token")))
	}
	twice := l.Total.PaidTwice
	if n := twice.Input + twice.Output + l.Items.PaidTwice.Input + l.Items.PaidTwice.Output; n > 0 {
		parts = append(parts, fmt.Sprintf("%d of them twice", n))
	}
	line := strings.Join(parts, ", ")
	parts = nil
	for _, items := range []struct {
		n    int
		what string
	}{
		{l.Items.Succeeded, "succeeded"}, {l.Items.Errored, "errored"}, {l.Items.Canceled, "canceled"},
		{l.Items.Expired, "expired"}, {l.Items.Waiting, "waiting"},
	} {
		if items.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", items.n, items.what))
		}
	}
	if len(parts) == 0 {
		return line
	}
	if line != "" {
		line += "; "
	}
	return line + "items of batches: " + strings.Join(parts, ", ")
}

// toldByStatus are the faults that a status says enough of.
var toldByStatus = []standin.Kind{standin.OK, standin.HTTP, standin.Rejected, standin.Throttled}

// replied is the status of an exchange, and what else became of it where that is not told by the status.
func replied(e standin.Exchange) string {
	var also string
	switch {
	case e.Status == 0:
	case !slices.Contains(toldByStatus, e.Fault):
		also = string(e.Fault)
	case e.ClosedBy == standin.Client:
		also = "left"
	}
	if also == "" {
		return status(e)
	}
	return fmt.Sprintf("%s (%s)", status(e), also)
}

// status is that of an exchange, or what became of it when no headers were sent.
func status(e standin.Exchange) string {
	if e.Status == 0 {
		return string(e.Fault)
	}
	return fmt.Sprint(e.Status)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3fs", d.Seconds()) }

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
