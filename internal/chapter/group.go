package chapter

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// allDead tells whether every process of a group is dead and only not reaped yet. In a container whose first process
// reaps nobody, such processes stay for ever. Without Linux's /proc it can't tell, and says no.
func allDead(group int) bool {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return false
	}
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has just been reaped
		}
		// proc(5): "pid (name) state ppid pgrp …"; the name may contain anything.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) > 2 && fields[2] == strconv.Itoa(group) && fields[0] != "Z" && fields[0] != "X" {
			return false
		}
	}
	return true
}
