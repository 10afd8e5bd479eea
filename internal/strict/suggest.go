package strict

import (
	"fmt"
	"reflect"
	"strings"
)

// Key returns the key of a struct field in documents, empty for a field that has none or "-".
func Key(f reflect.StructField) string {
	if key := f.Tag.Get("yaml"); key != "-" {
		return key
	}
	return ""
}

// fieldOf returns the field of a struct that has the key.
func fieldOf(s reflect.Value, key string) (reflect.Value, bool) {
	for i := range s.NumField() {
		if name := Key(s.Type().Field(i)); name != "" && name == key {
			return s.Field(i), true
		}
	}
	return reflect.Value{}, false
}

// unknown says that a struct has no such key, and which one was probably meant, empty when none is near.
func unknown(key string, t reflect.Type) (text, near string) {
	var names []string
	for i := range t.NumField() {
		if name := Key(t.Field(i)); name != "" {
			names = append(names, name)
		}
	}
	if near := Nearest(key, names); near != "" {
		return fmt.Sprintf("unknown key; did you mean %q?", near), near
	}
	return "unknown key; known are " + strings.Join(names, ", "), ""
}

// Nearest returns the name that somebody who wrote word probably meant, empty when none is near.
func Nearest(word string, names []string) string {
	best, least := "", 1+max(1, len(word)/3)
	for _, name := range names {
		if n := distance(fold(word), fold(name)); n < least {
			best, least = name, n
		}
	}
	return best
}

// fold makes the spellings of one key equal: maxWait, max-wait and max_wait.
func fold(s string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(s))
}

// distance is the number of letters to insert, remove, replace or swap with a neighbour to get from a to b.
func distance(a, b string) int {
	before, last, row := []int{}, make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			differ := 1
			if a[i-1] == b[j-1] {
				differ = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+differ)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, make([]int, len(b)+1)
	}
	return last[len(b)]
}
