package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

var (
	variable     = regexp.MustCompile(`\$\{([^}]*)\}`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	errNameless  = errors.New("${…} must hold the name of an environment variable, or file: and the path of a file")
)

const (
	filePrefix = "file:"
	longestKey = 64 << 10 // bytes of a file that stands for a value
)

// expand replaces ${NAME} by the environment variable, and ${file:PATH} by what the file holds, without line ends at its end:
// that is how secrets come from systemd, Docker and Kubernetes, and unlike a variable a file can change before a reload. What is
// not there is a mistake: a key that silently became empty would be looked for at the provider.
func expand(text string) (string, error) {
	var wrong []error
	out := variable.ReplaceAllStringFunc(text, func(v string) string {
		value, err := valueOf(v[len("${") : len(v)-len("}")])
		if err != nil {
			wrong = append(wrong, err)
		}
		return value
	})
	for _, err := range wrong {
		if errors.Is(err, errNameless) {
			return "", errNameless // without what stands there: it may be a key
		}
	}
	if len(wrong) > 0 {
		return "", joined(wrong)
	}
	return out, nil
}

func valueOf(name string) (string, error) {
	if path, ok := strings.CutPrefix(name, filePrefix); ok {
		return contentOf(path)
	}
	if !variableName.MatchString(name) {
		return "", errNameless
	}
	value, ok := os.LookupEnv(name)
	if !ok {
		return "", fmt.Errorf("environment variable ${%s} is not set", name)
	}
	return value, nil
}

// contentOf reads a file that stands for a value. Its errors show the path and nothing of what is in the file.
func contentOf(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("${file:…}: %w", err)
	}
	if !info.Mode().IsRegular() { // a pipe would be waited for
		return "", fmt.Errorf("${file:…}: %s is not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("${file:…}: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	content, err := io.ReadAll(io.LimitReader(f, longestKey+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("${file:…}: %w", err)
	case len(content) > longestKey:
		return "", fmt.Errorf("${file:…}: %s is longer than %d bytes", path, longestKey)
	}
	return strings.TrimRight(string(content), "\r\n"), nil
}

// joined is several mistakes about one value in one line.
func joined(wrong []error) error {
	texts := make([]string, len(wrong))
	for i, err := range wrong {
		texts[i] = err.Error()
	}
	return errors.New(strings.Join(texts, "; "))
}
