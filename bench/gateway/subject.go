package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// subject is a process between the load and the upstream. The first one is the upstream itself.
type subject struct {
	name string
	// command is what to run in a folder of its own, with the address to listen on and that of the upstream.
	command func(dir, listen, upstream string) ([]string, error)
	// needs is a program without which the subject is left out.
	needs string
	addr  string
	pid   int
}

const (
	bare  = "ReverseProxy"
	ours  = "Holdfast"
	noted = "Holdfast, logging"
)

func subjects(program string) []*subject {
	return []*subject{
		{name: "direct"},
		{name: "nginx", needs: "nginx", command: nginx},
		{name: "HAProxy", needs: "haproxy", command: haproxy},
		{name: bare, command: self("proxy")},
		{name: ours, command: holdfast(program, "error")},
		{name: noted, command: holdfast(program, "info")},
	}
}

func self(role string) func(string, string, string) ([]string, error) {
	return func(dir, listen, upstream string) ([]string, error) {
		name, err := os.Executable()
		return []string{name, role, listen, upstream, dir}, err
	}
}

// holdfast is the gateway as it is served, with every protection on: breaker, pace with limits that are counted and never
// reached, retry budget, a fallback, streams that are held back to their first content, pings, records of calls, metrics and
// the admin listener; at the level info it writes a line for each call.
func holdfast(program, level string) func(string, string, string) ([]string, error) {
	return func(dir, listen, upstream string) ([]string, error) {
		file := filepath.Join(dir, "holdfast.yaml")
		text := fmt.Sprintf(`listen: %s
admin: 127.0.0.1:0
targets: [{name: api, url: "http://%s", dialect: anthropic}]
routes: [{chain: [{target: api}, {target: api, model: claude-haiku-4-5}]}]
pace: {requests_per_minute: 1000000000, input_tokens_per_minute: 1000000000000, output_tokens_per_minute: 1000000000000}
log: {level: %s}
`, listen, upstream, level)
		return []string{program, "serve", "--config", file}, os.WriteFile(file, []byte(text), 0o600)
	}
}

// nginx streams what comes, as one has to set it up for an API of this kind, and keeps its connections to the upstream.
func nginx(dir, listen, upstream string) ([]string, error) {
	file := filepath.Join(dir, "nginx.conf")
	text := fmt.Sprintf(`daemon off; worker_processes auto; worker_rlimit_nofile 20000; pid %[1]s/nginx.pid; error_log %[1]s/error.log;
events { worker_connections 8192; }
http {
  access_log off; client_max_body_size 0; client_body_buffer_size 512k; keepalive_requests 100000000;
  client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  upstream api { server %[3]s; keepalive 256; keepalive_requests 100000000; }
  server { listen %[2]s; location / { proxy_pass http://api; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; } }
}
`, dir, listen, upstream)
	return []string{"nginx", "-c", file, "-p", dir}, os.WriteFile(file, []byte(text), 0o600)
}

func haproxy(dir, listen, upstream string) ([]string, error) {
	file := filepath.Join(dir, "haproxy.cfg")
	text := fmt.Sprintf(`global
  maxconn 8000
defaults
  mode http
  timeout connect 5s
  timeout client 600s
  timeout server 600s
  http-reuse always
frontend in
  bind %s
  default_backend api
backend api
  server api %s
`, listen, upstream)
	return []string{"haproxy", "-f", file, "-db"}, os.WriteFile(file, []byte(text), 0o600)
}

// start runs the subject until ctx ends, and waits until it takes connections.
func (s *subject) start(ctx context.Context, dir, upstream string) error {
	dir = filepath.Join(dir, strings.Map(func(r rune) rune {
		if r == ' ' || r == ',' {
			return '-'
		}
		return r
	}, s.name))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	listen, err := free()
	if err != nil {
		return err
	}
	words, err := s.command(dir, listen, upstream)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 2 * time.Second
	output, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		return err
	}
	defer func() { _ = output.Close() }() // the process has its own
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		return err
	}
	go cmd.Wait() //nolint:errcheck // it ends when it is told to
	s.addr, s.pid = listen, cmd.Process.Pid
	for range 100 {
		if conn, err := net.Dial("tcp", listen); err == nil {
			_ = conn.Close()
			return nil
		}
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // a process has no other sign of being ready
	}
	said, _ := os.ReadFile(output.Name())
	return fmt.Errorf("%s takes no connection on %s: %s", s.name, listen, said)
}

// free is an address that nobody listens on.
func free() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}

// pids are the process and its children: nginx works in those.
func (s *subject) pids() []string {
	pids := []string{strconv.Itoa(s.pid)}
	if children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", s.pid, s.pid)); err == nil {
		pids = append(pids, strings.Fields(string(children))...)
	}
	return pids
}

var errProc = errors.New("the system does not tell of its processes as Linux does")

// memory is what the process and its children hold in memory, in bytes.
func (s *subject) memory() (sum int64, err error) {
	for _, pid := range s.pids() {
		text, err := os.ReadFile("/proc/" + pid + "/status")
		if err != nil {
			return 0, err
		}
		_, rest, _ := strings.Cut(string(text), "VmRSS:")
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			return 0, errProc
		}
		kilobytes, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil {
			return 0, err
		}
		sum += kilobytes << 10
	}
	return sum, nil
}

// tick is the unit of Linux for processor time.
const tick = 10 * time.Millisecond

// worked is the processor time that the process and its children have had. Unlike rates it says the same on a busy machine.
func (s *subject) worked() (sum time.Duration, err error) {
	for _, pid := range s.pids() {
		text, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			return 0, err
		}
		_, rest, _ := strings.Cut(string(text), ") ") // behind the name, which may hold anything
		fields := strings.Fields(rest)
		if len(fields) < 13 {
			return 0, errProc
		}
		for _, field := range fields[11:13] { // in user mode and in the kernel
			ticks, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return 0, err
			}
			sum += time.Duration(ticks) * tick
		}
	}
	return sum, nil
}
