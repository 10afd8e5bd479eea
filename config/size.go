package config

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes, written as such or with a unit: 512MiB, 1.5GB.
type Size int64

var sizeUnits = []struct {
	unit  string
	bytes float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}}

const sizePattern = `^[-+]?[0-9]+(\.[0-9]+)? ?([KMG]i?B|kB|B)?$`

var errSize = errors.New("must be a size such as 512MiB, or a number of bytes")

// UnmarshalText reads a number with or without a unit.
func (s *Size) UnmarshalText(text []byte) error {
	number, factor := strings.TrimSpace(string(text)), 1.0
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		*s = Size(n)
		return nil
	}
	for _, u := range sizeUnits {
		if n, ok := strings.CutSuffix(number, u.unit); ok {
			number, factor = strings.TrimRight(n, " "), u.bytes
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if n *= factor; err != nil || n != math.Trunc(n) || math.Abs(n) >= math.MaxInt64 { // NaN and halves of a byte too
		return errSize
	}
	*s = Size(n)
	return nil
}

// String returns the size in its largest whole binary unit, as UnmarshalText reads it.
func (s Size) String() string {
	for _, u := range []struct {
		unit  string
		bytes Size
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if s != 0 && s%u.bytes == 0 {
			return strconv.FormatInt(int64(s/u.bytes), 10) + u.unit
		}
	}
	return strconv.FormatInt(int64(s), 10)
}
