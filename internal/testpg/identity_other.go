//go:build !unix

package testpg

import "syscall"

// unprivileged has nothing to do where Postgres is not started by tests.
func unprivileged(string) (*syscall.SysProcAttr, error) { return nil, errAbsent }
