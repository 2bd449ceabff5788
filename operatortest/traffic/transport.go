package traffic

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Answer is an error reply that the API server might send.
type Answer struct {
	// Code is the HTTP status, such as 409.
	Code int
	// Reason is the machine-readable reason, such as metav1.StatusReasonConflict.
	Reason metav1.StatusReason
	// RetryAfter is sent in the Retry-After header, rounded to whole seconds. If it is zero, there is no header. client-go
	// itself retries a request if the reply has this header and the status 429 or 5xx.
	RetryAfter time.Duration
}

type transport struct {
	tap  *Tap
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context()) // a RoundTripper must leave the caller's request alone
	acceptJSON(request.Header)
	request.Header.Del("Accept-Encoding") // net/http adds its own, and then unpacks the reply
	parsed, err := parse(request)
	if err != nil {
		return nil, err
	}
	shown := t.tap.confined(request, &parsed)
	answer := t.tap.fromPast(request, &parsed)
	entry, action := t.tap.begin(parsed)
	if action.Answer == nil {
		action.Answer = answer
	}
	if action.Hold != nil {
		select {
		case <-action.Hold:
		case <-request.Context().Done():
			return t.tap.end(entry, Action{}, nil, request.Context().Err())
		}
		if t.tap.Killed() { // the operator may have been killed while the request was held
			return t.tap.end(entry, Action{}, nil, ErrKilled)
		}
	}
	if action.Delay != nil {
		return t.delay(entry, action, request)
	}
	if action.CutWatches {
		t.tap.CutWatches()
	}
	if action.Drop != nil {
		return t.tap.end(entry, action, nil, action.Drop)
	}
	if action.Answer != nil {
		response, err := action.Answer.response(request)
		return t.tap.end(entry, action, response, err)
	}
	response, err := t.send(entry, request)
	response, err = t.tap.end(entry, action, response, err)
	if err == nil && shown != nil && parsed.Verb == "list" && response.StatusCode == http.StatusOK {
		return onlyIn(shown, response)
	}
	if err != nil || parsed.Verb != "watch" || response.StatusCode != http.StatusOK {
		return response, err
	}
	if media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); media != runtime.ContentTypeJSON {
		_ = response.Body.Close()
		return nil, fmt.Errorf("the reply to %s is %s, although the test kit asked for JSON, which is all that it can read", parsed.Kind(), media)
	}
	response.Body = t.tap.openWatch(parsed, shown, response.Body)
	return response, nil
}

// delay sends a request when the channel action.Delay is closed, even if the operator has cancelled the request or is
// dead by then. On a slow network, too, a request that has been sent may arrive after the process or its connection has
// ended.
func (t *transport) delay(entry *Request, action Action, request *http.Request) (*http.Response, error) {
	sent := request.Clone(context.WithoutCancel(request.Context()))
	if request.Body != nil {
		body, err := io.ReadAll(request.Body)
		_ = request.Body.Close()
		if err != nil {
			return t.tap.end(entry, Action{}, nil, err)
		}
		sent.Body = io.NopCloser(bytes.NewReader(body))
	}
	type reply struct {
		response *http.Response
		err      error
	}
	replies := make(chan reply, 1)
	go func() {
		<-action.Delay
		response, err := t.send(entry, sent)
		response, err = t.tap.end(entry, Action{}, response, err) //nolint:bodyclose // the operator closes it, or the goroutine below
		replies <- reply{response, err}
	}()
	givenUp := ErrKilled
	select {
	case got := <-replies:
		return got.response, got.err
	case <-request.Context().Done():
		givenUp = request.Context().Err()
	case <-t.tap.killed:
	}
	go func() {
		if got := <-replies; got.response != nil {
			_ = got.response.Body.Close()
		}
	}()
	return nil, givenUp
}

func (a Answer) response(request *http.Request) (*http.Response, error) {
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Code:     int32(a.Code),
		Reason:   a.Reason,
		Message:  "injected by the test",
	})
	if err != nil {
		return nil, fmt.Errorf("write an injected answer: %w", err)
	}
	header := http.Header{"Content-Type": {runtime.ContentTypeJSON}}
	if a.RetryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(int(a.RetryAfter.Round(time.Second)/time.Second)))
	}
	return &http.Response{
		Status:     strconv.Itoa(a.Code) + " " + http.StatusText(a.Code),
		StatusCode: a.Code,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        header,
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
		Request:       request,
	}, nil
}
