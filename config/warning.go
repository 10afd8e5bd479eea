package config

import (
	"net/netip"
	"strings"
	"time"

	"holdfast/internal/strict"
	"holdfast/internal/wire"
)

// Warnings tells what works, but is probably not what is meant, each with its line. No warning shows a key.
func (f *File) Warnings() []string {
	c := checker{f, strict.Resume(f.source.lines)}
	c.warnOfAddresses()
	c.warnOfTargets()
	c.warnOfEndpoints()
	c.warnOfTimers()
	if f.Saved != (Saved{}) && !f.KeepsAnswers() {
		c.wrong("saved", "no chain ends in the word %s, so no answer is kept and none is used", savedWord)
	}
	var all []string
	for _, m := range c.doc.Mistakes() {
		all = append(all, wire.Scrub(m.Error(), longestMistake))
	}
	return all
}

func (c checker) warnOfAddresses() {
	if admin := c.AdminAddress(); admin != "" && !isLoopback(admin) {
		c.wrong("admin", "%s can be reached from other machines, and asks nobody who they are", admin)
	}
	if listen := c.ListenAddress(); !isLoopback(listen) && c.TLS == (TLS{}) {
		c.wrong("listen", "%s has no tls: keys and prompts cross the network in the clear, unless something in front of it has", listen)
	}
}

func (c checker) warnOfTargets() {
	for i, t := range c.Targets {
		at := item("targets", i)
		keyless := len(t.Pool()) == 0
		u, wrong := baseURL(t.URL)
		if wrong != "" || t.Provider != "" && t.URL == "" {
			continue
		}
		if keyless && len(c.Clients) > 0 && t.Provider == "" {
			c.wrong(at, "%s has no key: a client must send one for it in the usual header, and his own in holdfast-key", t.Label())
		}
		if keyless && t.Auth != "" {
			c.wrong(at+".auth", "says how a key is sent, and there is none")
		}
		if !keyless && u.Scheme == "http" && !isNear(u.Hostname()) {
			c.wrong(at+".url", "sends the key in the clear; https:// does not")
		}
	}
}

// isNear reports whether a host is on this machine or in this network, as far as its name tells.
func isNear(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
	}
	return !strings.Contains(host, ".") || strings.HasSuffix(host, ".local") || strings.HasSuffix(host, ".internal")
}

// warnOfTimers tells of timers that never end anything, because the deadline comes first.
func (c checker) warnOfTimers() {
	p, deadline := c.Call, c.Call.Deadline
	if deadline == 0 {
		deadline = defaultDeadline
	}
	for _, timer := range []struct {
		key  string
		time time.Duration
	}{{"connect_timeout", p.ConnectTimeout}, {"first_content_timeout", p.FirstContentTimeout}, {"idle_timeout", p.IdleTimeout}} {
		if deadline > 0 && timer.time > deadline {
			c.wrong("policy."+timer.key, "is %v, more than the deadline of %v, which comes first", timer.time, deadline)
		}
	}
}
