package config

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/netip"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"holdfast"
	"holdfast/internal/strict"
)

// checker finds what is wrong with a file beyond the shape of single values. It decides from the file alone.
type checker struct {
	*File
	doc *strict.Document
}

// check reports every mistake to the document.
func (f *File) check(d *strict.Document) {
	c := checker{f, d}
	c.addresses()
	c.targets()
	c.routes()
	c.policy()
	c.clients()
}

// wrong adds a mistake, unless the value at path or what holds it could not be read: that has been said.
func (c checker) wrong(path, format string, args ...any) {
	if !c.doc.Unread(path) {
		c.doc.Wrong(path, format, args...)
	}
}

func item(list string, i int) string { return list + "." + strconv.Itoa(i) }

// addresses checks the two listeners and who may reach them.
func (c checker) addresses() {
	listen, admin := c.ListenAddress(), c.AdminAddress()
	if !isAddress(listen) {
		c.wrong("listen", "must be host:port such as %s, not %q", defaultListen, listen)
	}
	if admin != "" && !isAddress(admin) {
		c.wrong("admin", "must be host:port such as %s, or the word %s, not %q", defaultAdmin, adminOff, admin)
	}
	if listen == admin && !strings.HasSuffix(listen, ":0") {
		c.wrong("admin", "is the address of listen too; it needs a port of its own, or the word %s", adminOff)
	}
	if !isLoopback(listen) && len(c.Clients) == 0 && !c.doc.Unread("clients") {
		c.wrong("listen", "%s can be reached from other machines, so it needs clients with keys; holdfast key new makes one", listen)
	}
	if (c.TLS.Cert == "") != (c.TLS.Key == "") {
		c.wrong("tls", "needs both cert and key, the files of the certificate chain and of its key")
	}
}

func isAddress(text string) bool {
	_, port, err := net.SplitHostPort(text)
	return err == nil && isPort(port)
}

func isPort(text string) bool {
	_, err := strconv.ParseUint(text, 10, 16)
	return err == nil
}

// isLoopback reports whether only this machine can reach an address.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "localhost" {
		return true // what is no address at all is another mistake
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// policy asks the policy itself, so that the rules exist once, and translates its field names into keys.
func (c checker) policy() {
	sections := c.validate(c.Policy(), keyOf)
	for i, t := range c.Targets {
		if t.Breaker == nil || sections > 0 {
			continue // what is inherited from a wrong section is wrong there
		}
		c.validate(holdfast.Policy{Breaker: holdfast.NewBreaker(c.breakerOf(t).settings())}, func(field string) string {
			return item("targets", i) + "." + keyOf(field)
		})
	}
}

func (c checker) validate(p holdfast.Policy, key func(field string) string) (mistakes int) {
	many, ok := p.Validate().(interface{ Unwrap() []error })
	if !ok {
		return 0
	}
	for _, err := range many.Unwrap() {
		field, text, _ := strings.Cut(strings.TrimPrefix(err.Error(), "holdfast: policy "), " ")
		c.wrong(key(field), "%s", text)
	}
	return len(many.Unwrap())
}

var capital = regexp.MustCompile(`[A-Z]`)

// keyOf turns a policy's field into its key: Backoff.ThrottleBase into policy.backoff.throttle_base.
func keyOf(field string) string {
	key := strings.ToLower(strings.TrimPrefix(strings.ReplaceAll(capital.ReplaceAllString(field, "_$0"), "._", "."), "_"))
	switch {
	case strings.HasPrefix(key, "breaker."):
		return key
	case key == "server_wait":
		return "policy.backoff.server_wait"
	case strings.HasPrefix(key, "budget."):
		return "policy.retry_" + key
	}
	return "policy." + key
}

// breakerOf is the breaker of a target: its own keys, and for the rest those of the section.
func (f *File) breakerOf(t Target) Breaker { return inherit(t.Breaker, f.Breaker) }

// paceOf is the same for the pace.
func (f *File) paceOf(t Target) Pace { return inherit(t.Pace, f.Pace) }

// inherit fills the fields that are zero from the section. Zero is what an absent key leaves, and means the default.
func inherit[S any](own *S, section S) S {
	if own == nil {
		return section
	}
	merged := *own
	to, from := reflect.ValueOf(&merged).Elem(), reflect.ValueOf(section)
	for i := range to.NumField() {
		if to.Field(i).IsZero() {
			to.Field(i).Set(from.Field(i))
		}
	}
	return merged
}

// clients checks who may use the gateway. No mistake shows a hash: it may be the key itself in the wrong place.
func (c checker) clients() {
	names, hashes := map[string]int{}, map[string]int{}
	for i, client := range c.Clients {
		at := item("clients", i)
		c.name(at, client.Name, names, i, "client")
		hash := strings.ToLower(client.KeySHA256)
		first, taken := hashes[hash]
		switch raw, err := hex.DecodeString(hash); {
		case hash == "":
			c.wrong(at+".key_sha256", "is missing; holdfast key new makes a key and its hash")
		case err != nil || len(raw) != sha256.Size:
			c.wrong(at+".key_sha256", "must be the %d hex digits of a key's SHA-256; holdfast key hash makes them of a key", 2*sha256.Size)
		case [sha256.Size]byte(raw) == sha256.Sum256(nil):
			c.wrong(at+".key_sha256", "is the hash of an empty text")
		case taken:
			c.wrong(at+".key_sha256", "is that of %s too: one of them would never be recognised", item("clients", first))
		default:
			hashes[hash] = i
		}
	}
}

const longestName = 64

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@+-]*$`)

// name checks the name of a thing at its place in its list, and that nothing before it has the same.
func (c checker) name(at, name string, names map[string]int, place int, what string) {
	first, taken := names[name]
	switch {
	case name == "":
		c.wrong(at+".name", "is missing; each %s needs one", what)
	case !nameForm.MatchString(name) || len(name) > longestName:
		c.wrong(at+".name", "must be at most %d letters, digits and . _ : @ + -, and begin with a letter or digit", longestName)
	case taken:
		c.wrong(at+".name", "is %q, and so is that of %s", name, item(at[:strings.LastIndexByte(at, '.')], first))
	default:
		names[name] = place
	}
}
