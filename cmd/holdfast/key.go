package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

func newKeyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Make keys for those who may use the gateway",
		Long: `A client of the gateway sends a key of its own, as x-api-key, as a bearer token or as
holdfast-key. The configuration holds nothing but its SHA-256.`,
		Args:                       knownCommand,
		SuggestionsMinimumDistance: 2,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newKeyNewCommand(), newKeyHashCommand())
	return cmd
}

const (
	keyPrefix = "hf-" // tells what kind of key it is, to people and to scanners for lost keys
	keyBytes  = 32
)

func newKeyNewCommand() *cobra.Command {
	name := ""
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Make a client key, and the line of the configuration that lets it in",
		Long: `Print a new key of 256 random bits, once and nowhere else, and the line of the
configuration that lets it in. The key alone goes to stdout.`,
		Example: `  holdfast key new --name app
  holdfast key new --name nightly > nightly.key`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVar(&name, "name", "client", "`name` of the client in logs and metrics")
	cmd.RunE = command(func(_ context.Context, _ []string, s streams) error { return newKey(name, rand.Reader, s) })
	return cmd
}

func newKey(name string, random io.Reader, s streams) error {
	if strings.ContainsAny(name, " \t\r\n\"'{},:#") || name == "" {
		return badUsage("letters, digits and . _ - make one", "--name %q is not a name", name)
	}
	raw := make([]byte, keyBytes)
	if _, err := io.ReadFull(random, raw); err != nil {
		return failed("", "cannot make a key: %w", err)
	}
	key := keyPrefix + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(raw))
	if err := give(s.out, key+"\n"); err != nil {
		return err
	}
	say(s.err, "the client sends the key above, which is shown this once; the configuration has its hash:\n\nclients:\n  - {name: %s, key_sha256: %s}", name, hashOfKey(key))
	return nil
}

func newKeyHashCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hash",
		Short: "Print the hash of a key that is read from standard input",
		Long: `Print the SHA-256 of a key, as the configuration wants it. The key is the first line of
standard input: an argument would be seen by everybody on the machine.`,
		Example: `  holdfast key hash < app.key`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 { // which is not repeated here
				return badUsage("holdfast key hash < FILE", "a key is read from standard input; as an argument everybody on this machine can see it")
			}
			return nil
		},
	}
	cmd.RunE = command(func(_ context.Context, _ []string, s streams) error {
		key, err := readKey(s.in)
		if err != nil {
			return badUsage("holdfast key new makes one", "%w", err)
		}
		return give(s.out, hashOfKey(key)+"\n")
	})
	return cmd
}

const longestClientKey = 4096

var (
	errNoKey      = errors.New("standard input holds no key")
	errNotOneKey  = errors.New("standard input holds more than a key on one line")
	errUnfitKey   = errors.New("the key holds a space, a control character or one beyond ASCII, which no header carries")
	errUnreadable = errors.New("cannot read standard input")
)

// readKey reads the one line that a key is. Its errors do not show it.
func readKey(in io.Reader) (string, error) {
	text, err := io.ReadAll(io.LimitReader(bufio.NewReader(in), longestClientKey+1))
	if err != nil {
		return "", errUnreadable
	}
	key := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	switch {
	case key == "":
		return "", errNoKey
	case strings.ContainsAny(key, "\r\n") || len(text) > longestClientKey:
		return "", errNotOneKey
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", errUnfitKey
	}
	return key, nil
}

func hashOfKey(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}
