package main

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
)

// moments remembers a time for each Kluster. A restart forgets them.
type moments struct {
	mutex sync.Mutex
	times map[cache.ObjectName]time.Time
}

func (m *moments) set(key cache.ObjectName, at time.Time) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.times == nil {
		m.times = map[cache.ObjectName]time.Time{}
	}
	m.times[key] = at
}

// of is long ago if there is none.
func (m *moments) of(key cache.ObjectName) time.Time {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.times[key]
}

func (m *moments) forget(key cache.ObjectName) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	delete(m.times, key)
}
