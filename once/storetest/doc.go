// Package storetest holds a store of effects against what package once relies on. Its test calls Run; nothing else does.
package storetest
