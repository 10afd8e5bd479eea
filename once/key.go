package once

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"hash"
	"regexp"
	"strings"
)

// What keys begin with. The number changes when the same parts would give another key.
const (
	plainPrefix  = "hf1-"
	keyedPrefix  = "hk1-"
	maxKeyLength = 255 // Stripe's limit, and that of most services that took the header over from it
)

// letters writes hashes: lower case and digits, so that no service and no collation can mix two keys up.
var letters = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// noIdentity is the key of no parts: everybody's, and so nobody's.
var noIdentity = Key()

// Key is the idempotency key of one business action: a SHA-256 of what identifies it, as "ticket", the tenant and the order.
// The same parts give the same key in every process and for ever; parts are kept apart, so that "ab", "c" differs from "a",
// "bc". A key has 56 characters, all lower-case letters, digits and one hyphen, and stands in a header as it is.
//
// What belongs into the parts is what makes two actions the same one. A second action on the same thing, or a first one
// that was rejected and whose cause was mended, needs a further part: a service that honours keys may answer the old key
// with the old rejection.
//
// Nobody can read the parts from a key. Who can guess them, as a mail address, can hash the guess and compare: for such parts
// use [Keyed]. Key never looks at the clock or the dice, and never fails. No parts give a key that [Do] refuses.
func Key(parts ...string) string { return keyOf(sha256.New(), plainPrefix, parts) }

// Keyed is [Key] with a secret, of 16 random bytes or more: who does not have the secret cannot test a guess. Another secret
// gives other keys, so that what was done under the old one would be done again. An empty secret protects nothing. Keyed never
// keeps the secret, and never fails.
func Keyed(secret []byte, parts ...string) string {
	return keyOf(hmac.New(sha256.New, secret), keyedPrefix, parts)
}

func keyOf(h hash.Hash, prefix string, parts []string) string {
	h.Write([]byte("holdfast/once " + prefix))
	var length [8]byte
	for _, part := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		h.Write([]byte(part))
	}
	return prefix + letters.EncodeToString(h.Sum(nil))
}

// KeyError is a key that cannot be used: empty, longer than 255 bytes, with a character that no header may hold, or one made
// of no parts.
type KeyError struct{ reason string }

// Error says what is wrong with the key. It never contains the key.
func (e *KeyError) Error() string { return "once: the key " + e.reason }

// Hint says what the caller can do about it. It never returns an empty text.
func (e *KeyError) Hint() string { return "make keys with once.Key from what identifies the action" }

// checkKey holds a key against what headers and services take. The error never contains the key, which may say something.
func checkKey(key string) error {
	switch {
	case key == "":
		return &KeyError{"is empty"}
	case len(key) > maxKeyLength:
		return &KeyError{fmt.Sprintf("has %d bytes, the most is %d", len(key), maxKeyLength)}
	case key == noIdentity:
		return &KeyError{"was made of no parts, and is the same for every action"}
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }):
		return &KeyError{"has a space, a quote or a character that is not printable ASCII"}
	}
	return nil
}

var madeHere = regexp.MustCompile(`^h[fk]1-[a-z2-7]{52}$`)

// shown is a key as errors show it: one of ours as it is, which says nothing about anybody, and another's only hashed.
func shown(key string) string {
	if madeHere.MatchString(key) {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return "sha256:" + letters.EncodeToString(sum[:10])
}

type keyKey struct{}

// WithKey returns a context with which [Transport] gives a request its key. [Do] makes one for effects whose far side replays.
// It covers one request: give each of several their own, by WithKey(ctx, Key(key, "second")). It never checks the key;
// [Transport] does.
func WithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyKey{}, key)
}

// KeyOf returns the key that [WithKey] put into the context, and "" when there is none. It never makes one up.
func KeyOf(ctx context.Context) string {
	key, _ := ctx.Value(keyKey{}).(string)
	return key
}
