package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/config"
	"holdfast/standin"
)

// showIncident plays the incident, and with --keep goes on serving.
func (o *serveOptions) showIncident(ctx context.Context, s streams, p place) error {
	d := &incident{stage: &stage{streams: s, colour: paint(s.out)}}
	d.first, d.second, d.alone = standin.New(incidentPlan()), standin.New(secondPlan()), standin.New(incidentPlan())
	var urls [3]string
	var stops []func()
	defer func() {
		for _, stop := range stops {
			stop()
		}
	}()
	for i, server := range []*standin.Server{d.first, d.second, d.alone} {
		url, stop, err := p.serve(server)
		if err != nil {
			return err
		}
		stops, urls[i] = append(stops, stop), url
	}
	conf, err := o.incidentConfig(urls[0], urls[1])
	if err != nil {
		return err
	}
	service, err := openService(o, conf, s, p)
	if err != nil {
		return err
	}
	serving, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- service.serve(serving) }()
	d.through, d.direct = demoCaller{service.url(), p.callers}, demoCaller{urls[2], p.callers}
	err = d.play(ctx)
	if err == nil {
		err = d.sum()
	}
	if err == nil && o.keep {
		err = d.goOn(ctx, service)
	}
	end()
	p.callers.CloseIdleConnections()
	return errors.Join(err, <-ended)
}

// incidentConfig is the configuration of the gateway in the demo. Without --keep it serves on a free port, for itself alone.
func (o *serveOptions) incidentConfig(first, second string) (configured, error) {
	file, err := config.Parse([]byte(incidentConfig))
	if err != nil {
		return configured{}, err
	}
	file.Targets[0].URL, file.Targets[1].URL = first, second
	if !o.keep {
		file.Listen, file.Admin = "127.0.0.1:0", "off"
	}
	conf := configured{file: file, from: "the demo"}
	return conf, o.override(conf)
}

// goOn serves until ctx ends. The incident comes again and again.
func (d *incident) goOn(ctx context.Context, service *service) error {
	d.write("\nIt goes on: the incident comes again every %.0f seconds. Any key is good.\n", incidentLength.Seconds())
	if err := service.announce(); err != nil {
		return err
	}
	again := time.NewTicker(incidentLength)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
			d.first.Reset()
			d.second.Reset()
		}
	}
}

// incident is the show of holdfast serve --demo: the same calls at the same moments, through the gateway and without it, while
// an API fails in every way there is.
type incident struct {
	*stage
	first, second, alone *standin.Server // alone is first once more, for those who call it without the gateway
	through, direct      demoCaller
	with, without        tally
}

// outcomes are what became of one call, both ways.
type outcomes struct {
	n             int
	at            time.Duration
	with, without seen
}

// incidentCalls is how many calls are made.
const incidentCalls = int(incidentLength / incidentEvery)

// play makes the calls and writes a line for each.
func (d *incident) play(ctx context.Context) error {
	d.write("Two stand-ins on this machine play an API and a second one to fall back to, and fail as a real API does. The same")
	d.write("SDK calls every %v, once through the gateway and once without it, with its own two retries both times.", incidentEvery)
	d.write("\n%-7s %-12s %-32s %-46s %s", "time", "call", "the APIs answered", "through the gateway", "without it")
	for _, s := range []*standin.Server{d.first, d.second, d.alone} {
		s.Reset() // the incident begins now, for all alike
	}
	began, phase := time.Now(), 0
	done := make(chan outcomes, incidentCalls)
	next := time.NewTimer(0)
	defer next.Stop()
	for begun, ended := 0, 0; ended < incidentCalls && d.broken == nil; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case o := <-done:
			ended++
			d.show(o)
		case <-next.C:
			at := time.Since(began)
			for ; phase < len(incidentPhases) && at >= incidentPhases[phase].from; phase++ {
				d.write("%s", d.colour(bold, fmt.Sprintf("%4.1f s  %s", at.Seconds(), incidentPhases[phase].says)))
			}
			begun++
			go d.both(ctx, begun, at, done)
			if begun < incidentCalls {
				next.Reset(time.Until(began.Add(time.Duration(begun) * incidentEvery)))
			}
		}
	}
	return d.broken
}

// both makes a call through the gateway and, at the same time, without it.
func (d *incident) both(ctx context.Context, n int, at time.Duration, done chan<- outcomes) {
	without := make(chan seen, 1)
	go func() { without <- d.direct.call(ctx, n) }()
	with := d.through.call(ctx, n)
	done <- outcomes{n, at, with, <-without}
}

func (d *incident) show(o outcomes) {
	d.with.add(o.with)
	d.without.add(o.without)
	form := "json"
	if streamed(o.n) {
		form = "stream"
	}
	var replies []string
	if first := repliesTo(d.first, o.n); first != "" {
		replies = append(replies, first)
	}
	if second := repliesTo(d.second, o.n); second != "" {
		replies = append(replies, "second: "+second)
	}
	if replies == nil {
		replies = append(replies, "not asked")
	}
	d.write("%4.1f s  #%-3d %-6s  %-32s %s %s", o.at.Seconds(), o.n, form, strings.Join(replies, "; "),
		d.mark(o.with, 46), d.mark(o.without, 0))
}

// mark pads what a caller saw, and colours it.
func (d *incident) mark(s seen, width int) string {
	colour := green
	if !s.answered {
		colour = red
	}
	return d.colour(colour, fmt.Sprintf("%-*s", width, s))
}

// sum writes the table at the end.
func (d *incident) sum() error {
	d.write("\n%s", d.colour(bold, tallyHead))
	d.write("%s", d.with.row("through the gateway", len(d.first.Journal())+len(d.second.Journal())))
	d.write("%s", d.without.row("the same SDK alone", len(d.alone.Journal())))
	d.write("\nThe same SDK, the same calls, the same incident. The difference is the base URL.")
	return d.verdict()
}

// verdict fails the demo if a call through the gateway got no answer.
func (d *incident) verdict() error {
	if lost := d.with.calls - d.with.answered; lost > 0 && d.broken == nil {
		return failed("the lines above say what was seen", "%s through the gateway got no answer", plural(lost, "call"))
	}
	return d.broken
}
