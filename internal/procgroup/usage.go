package procgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Usage counts the resources that all processes of a group use together.
type Usage struct {
	// Threads counts threads, of which each process has at least one. Files counts open files, including connections.
	Threads, Files int
	// Memory is the resident memory in bytes, without mapped files and shared memory.
	Memory int64
}

type member struct {
	pid     string
	threads int
}

// members returns the processes of a group that are not zombies, and whether this machine has Linux's /proc.
func members(group int) (living []member, known bool) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return nil, false
	}
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // the process has just been reaped
		}
		// proc(5): "pid (name) state ppid pgrp …". The number of threads is the 18th field after the name, which may contain
		// any character.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) > 17 && fields[2] == strconv.Itoa(group) && fields[0] != "Z" && fields[0] != "X" {
			threads, _ := strconv.Atoi(fields[17])
			living = append(living, member{pid: filepath.Base(filepath.Dir(path)), threads: threads})
		}
	}
	return living, true
}

var anonymousMemory = regexp.MustCompile(`(?m)^RssAnon:\s+(\d+) kB$`)

// UsageOf measures a group. It returns an error without Linux's /proc.
func UsageOf(group int) (Usage, error) {
	living, known := members(group)
	if !known {
		return Usage{}, fmt.Errorf("measure process group %d: this machine has no /proc", group)
	}
	var found Usage
	for _, process := range living { // a process that has just ended uses nothing
		found.Threads += process.threads
		files, _ := os.ReadDir(filepath.Join("/proc", process.pid, "fd"))
		found.Files += len(files)
		status, _ := os.ReadFile(filepath.Join("/proc", process.pid, "status"))
		if memory := anonymousMemory.FindSubmatch(status); memory != nil {
			kilobytes, _ := strconv.ParseInt(string(memory[1]), 10, 64)
			found.Memory += kilobytes << 10
		}
	}
	return found, nil
}
