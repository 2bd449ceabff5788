package doks

import (
	"net/http"
	"strconv"
	"time"
)

// before applies the fault that has hit the request, if it comes before the effect. It reports whether the request
// continues.
func (e *Emulator) before(writer http.ResponseWriter, x *exchange) bool {
	fault := x.fault
	if fault == nil || fault.After {
		return true
	}
	switch fault.Kind {
	case FaultTooMany:
		wait := ""
		if fault.RetryAfter > 0 {
			wait = seconds(time.Duration(fault.RetryAfter))
		}
		e.answer(writer, x, tooMany(wait), false)
		return false
	case FaultDelay:
		e.wait(x, time.Duration(fault.Delay))
		return true
	case FaultDrop:
		panic(http.ErrAbortHandler)
	case FaultServerError, FaultUnavailable, FaultBadGateway:
		e.breakDown(writer, x)
		return false
	default:
		return true // the fault changes what the request does, or its reply
	}
}

// after sends the reply. A fault may delay it, cut it off, drop it or replace it.
func (e *Emulator) after(writer http.ResponseWriter, x *exchange, done reply) {
	fault := x.fault
	if fault == nil || !fault.After {
		e.answer(writer, x, done, fault != nil && fault.Kind == FaultCut)
		return
	}
	switch fault.Kind {
	case FaultDelay:
		e.wait(x, time.Duration(fault.Delay))
	case FaultDrop:
		panic(http.ErrAbortHandler)
	case FaultServerError, FaultUnavailable, FaultBadGateway:
		e.breakDown(writer, x)
		return
	default:
	}
	e.answer(writer, x, done, false)
}

// breakDown responds like a server that is failing.
func (e *Emulator) breakDown(writer http.ResponseWriter, x *exchange) {
	switch x.fault.Kind {
	case FaultUnavailable:
		e.answer(writer, x, fail(http.StatusServiceUnavailable, "Service Unavailable"), false)
	case FaultBadGateway:
		e.journal.change(x.entry, func(entry *Entry) { entry.Status = http.StatusBadGateway })
		sendPage(writer)
	default:
		e.answer(writer, x, fail(http.StatusInternalServerError, "Unexpected server-side error"), false)
	}
}

// sendPage responds like a proxy whose server is down: with HTML where JSON is expected.
func sendPage(writer http.ResponseWriter) {
	const page = "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>\n"
	writer.Header().Set("Content-Type", "text/html")
	writer.Header().Set("Content-Length", strconv.Itoa(len(page)))
	writer.WriteHeader(http.StatusBadGateway)
	_, _ = writer.Write([]byte(page)) // it doesn't matter if the client has gone
}

// wait delays the request until limit has passed on the emulator's clock. If the client gives up first, wait aborts
// the request.
func (e *Emulator) wait(x *exchange, limit time.Duration) {
	timer := e.options.Clock.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-x.request.Context().Done():
		e.journal.change(x.entry, func(entry *Entry) { entry.Note += ", given up by the client" })
		panic(http.ErrAbortHandler)
	}
}
