package load

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"example.com/operator-workshop/operatortest/traffic"
)

// auditPolicy makes the API server log only one user's requests, without the requests' bodies. The server logs a watch
// when the watch begins and again when it ends.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: [%q]
`

// request is a request that the API server has answered, or a watch that has begun.
type request struct {
	traffic.Request
	// received is when the API server received the request. The server uses this machine's clock.
	received time.Time
}

// auditEvent has the fields of an audit log line that are used here.
type auditEvent struct {
	AuditID                  string    `json:"auditID"`
	Verb                     string    `json:"verb"`
	RequestURI               string    `json:"requestURI"`
	RequestReceivedTimestamp time.Time `json:"requestReceivedTimestamp"`
	ObjectRef                struct {
		APIGroup    string `json:"apiGroup"`
		APIVersion  string `json:"apiVersion"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// auditLog reads the API server's audit log while it grows.
type auditLog struct {
	path     string
	offset   int64
	seen     sets.Set[string]
	requests []request
}

func newAuditLog(path string) *auditLog { return &auditLog{path: path, seen: sets.New[string]()} }

// read reads the lines that were added since the last call. It leaves an incomplete line for the next call.
func (l *auditLog) read() error {
	file, err := os.Open(l.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // the API server has not created it yet
	}
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	defer file.Close()
	if _, err := file.Seek(l.offset, io.SeekStart); err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the audit log: %w", err)
		}
		l.offset += int64(len(line))
		if err := l.add(line); err != nil {
			return err
		}
	}
}

// add adds the request that a line describes. It ignores a line about a request that it has already added, such as the
// line for the end of a watch.
func (l *auditLog) add(line []byte) error {
	var event auditEvent
	if err := json.Unmarshal(line, &event); err != nil {
		return fmt.Errorf("read a line of the audit log: %w", err)
	}
	if l.seen.Has(event.AuditID) {
		return nil
	}
	l.seen.Insert(event.AuditID)
	path, query, _ := strings.Cut(event.RequestURI, "?")
	object := event.ObjectRef
	l.requests = append(l.requests, request{
		received: event.RequestReceivedTimestamp,
		Request: traffic.Request{
			Verb: event.Verb, Path: path, Status: event.ResponseStatus.Code, Done: true,
			Group: object.APIGroup, Version: object.APIVersion, Resource: object.Resource, Subresource: object.Subresource,
			Namespace: object.Namespace, Name: object.Name,
			Lists: event.Verb == "watch" && strings.Contains(query, "sendInitialEvents=true"),
		},
	})
	return nil
}

// between returns the requests that the API server received in a period. The period includes from, but not to.
func (l *auditLog) between(from, to time.Time) []request {
	var found []request
	for _, each := range l.requests {
		if !each.received.Before(from) && each.received.Before(to) {
			found = append(found, each)
		}
	}
	return found
}

// watches reports whether a watch of the given API resource has begun since the given time. Refused watches don't
// count.
func (l *auditLog) watches(group, resource string, since time.Time) bool {
	for _, each := range l.requests {
		if each.Verb == "watch" && each.Group == group && each.Resource == resource && each.Status < 300 && !each.received.Before(since) {
			return true
		}
	}
	return false
}

// last returns when the newest request arrived, or the zero time if there is none.
func (l *auditLog) last() time.Time {
	var newest time.Time
	for _, each := range l.requests {
		if each.received.After(newest) {
			newest = each.received
		}
	}
	return newest
}
