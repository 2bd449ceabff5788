package doks

import (
	"net/http"
	"strconv"
	"time"
)

// before lets a fault come in front of the effect. It tells whether the request goes on.
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
		return true // it changes what the request does, or what becomes of its reply
	}
}

// after sends the reply, or what a fault leaves of it.
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

// breakDown answers as a server that has a bad moment.
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

// sendPage answers as a proxy does whose server is gone: with HTML where JSON is expected.
func sendPage(writer http.ResponseWriter) {
	const page = "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>\n"
	writer.Header().Set("Content-Type", "text/html")
	writer.Header().Set("Content-Length", strconv.Itoa(len(page)))
	writer.WriteHeader(http.StatusBadGateway)
	_, _ = writer.Write([]byte(page)) // a client that has gone is no concern of the server's
}

// wait holds the request by the emulator's clock, or until the client gives up.
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
