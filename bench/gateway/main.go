// Command gateway measures what a gateway costs when nothing fails: Holdfast with all its protections, beside the proxy of
// the standard library, nginx and HAProxy, and no proxy at all. Each is a process of its own; the load and the upstream,
// which are as cheap as can be, share the machine with it. All that is compared is measured in turns, so that what else the
// machine does hits all alike, and ratios are of figures of one turn.
//
//	go run ./gateway              prints the table, in about two minutes
//	go run ./gateway -seconds 30  in half a minute, and more roughly
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) > 1 && !strings.HasPrefix(args[0], "-") {
		return play(ctx, args)
	}
	flags := flag.NewFlagSet("gateway", flag.ContinueOnError)
	seconds := flags.Int("seconds", 90, "how long to measure, about")
	program := flags.String("holdfast", "", "the `program` to measure; empty: it is built")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return compare(ctx, *seconds, *program)
}

// play is a role in a process of its own: role, address, and for a proxy that of the upstream and a folder.
func play(ctx context.Context, args []string) error {
	if args[0] == "load" {
		return loaded(args[1:])
	}
	l, err := net.Listen("tcp", args[1])
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	switch role := args[0]; role {
	case "upstream":
		context.AfterFunc(ctx, func() { _ = l.Close() })
		_ = upstream(l)
		return nil
	case "proxy":
		return proxy(ctx, l, args[2])
	default:
		return fmt.Errorf("there is no role %q", role)
	}
}

// loaded is load alone, for a profile of what stands at the address: what to ask for, tokens of the prompt, connections,
// seconds.
func loaded(args []string) error {
	if len(args) != 5 {
		return errors.New("usage: load ADDRESS WORK TOKENS CONNECTIONS SECONDS")
	}
	var n [3]int
	for i := range n {
		var err error
		if n[i], err = strconv.Atoi(args[2+i]); err != nil {
			return err
		}
	}
	d, err := drive(args[0], request(work(args[1]), n[0]), n[1], time.Duration(n[2])*time.Second)
	if err == nil {
		_, err = fmt.Fprintf(os.Stdout, "%.0f/s, %.1f MB/s\n", d.perSecond(), d.megabytes())
	}
	return err
}

// compare starts everybody, measures, and prints the table.
func compare(ctx context.Context, seconds int, program string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if program == "" {
		program = filepath.Join(dir, "holdfast")
		build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/holdfast")
		build.Dir, build.Stderr = "..", os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("building holdfast: %w", err)
		}
	}
	source := &subject{name: "upstream", command: self("upstream")}
	if err := source.start(ctx, dir, ""); err != nil {
		return err
	}
	var there []*subject
	for _, s := range subjects(program) {
		switch _, missing := exec.LookPath(s.needs); {
		case s.command == nil:
			s.addr = source.addr
		case s.needs != "" && missing != nil:
			_, _ = fmt.Fprintf(os.Stdout, "%s is not installed: left out\n", s.name)
			continue
		default:
			if err := s.start(ctx, dir, source.addr); err != nil {
				return err
			}
		}
		there = append(there, s)
	}
	t := &table{subjects: there, seconds: seconds}
	if err := t.measure(ctx); err != nil {
		return err
	}
	return t.write(os.Stdout)
}
