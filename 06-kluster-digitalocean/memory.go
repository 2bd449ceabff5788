package main

import (
	"sync"

	"k8s.io/client-go/tools/cache"
)

// memory holds something about each Kluster. A restart forgets it, so it must be what can be found out again.
type memory[T any] struct {
	mutex  sync.Mutex
	values map[cache.ObjectName]T
}

func (m *memory[T]) set(key cache.ObjectName, value T) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.values == nil {
		m.values = map[cache.ObjectName]T{}
	}
	m.values[key] = value
}

// of is the zero value if there is none.
func (m *memory[T]) of(key cache.ObjectName) T {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.values[key]
}

func (m *memory[T]) forget(key cache.ObjectName) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	delete(m.values, key)
}
