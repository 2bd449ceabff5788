package doks

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/google/uuid"
)

// reply is an HTTP reply that the emulator has not sent yet.
type reply struct {
	status int
	// body is sent as JSON, raw as YAML. If both are nil, the reply has no body.
	body any
	raw  []byte
	// effective means that the request changed something.
	effective bool
	// cluster is the cluster to name in the journal; nil means the one in the request's path, if any.
	cluster *cluster
	// later, if not nil, makes the reply to send instead of this one. It may take a while, so it runs after the clusters
	// are unlocked.
	later func(context.Context) reply
	// header contains the headers particular to this reply.
	header map[string]string
}

// problem is the body of an error reply.
type problem struct {
	ID        string `json:"id"`
	Message   string `json:"message"`
	RequestID string `json:"request_id"`
}

var problemIDs = map[int]string{
	http.StatusBadRequest:          "bad_request",
	http.StatusUnauthorized:        "unauthorized",
	http.StatusForbidden:           "forbidden",
	http.StatusNotFound:            "not_found",
	http.StatusUnprocessableEntity: "unprocessable_entity",
	http.StatusTooManyRequests:     "too_many_requests",
}

// fail returns an error reply. As in the real API, it has a request ID of its own, which godo includes in the message
// of its error, so no two of these messages are the same.
func fail(status int, message string) reply {
	id, known := problemIDs[status]
	if !known {
		id = "server_error"
	}
	return reply{status: status, body: problem{ID: id, Message: message, RequestID: uuid.NewString()}}
}

func notFound() reply {
	return fail(http.StatusNotFound, "The resource you requested could not be found.")
}

func unauthorized() reply { return fail(http.StatusUnauthorized, "Unable to authenticate you.") }

func forbidden() reply {
	return fail(http.StatusForbidden, "You are not authorized to perform this operation.")
}

func invalid(message string) reply { return fail(http.StatusUnprocessableEntity, message) }

func badRequest(message string) reply { return fail(http.StatusBadRequest, message) }

func tooMany(wait string) reply {
	refused := fail(http.StatusTooManyRequests, "API Rate limit exceeded.")
	if wait != "" {
		refused.header = map[string]string{"retry-after": wait}
	}
	return refused
}

// encode returns the body as it is sent, and its type.
func (r reply) encode() (content []byte, contentType string, err error) {
	if r.raw != nil {
		return r.raw, "application/yaml", nil
	}
	if r.body == nil {
		return nil, "", nil
	}
	content, err = json.Marshal(r.body)
	return append(content, '\n'), "application/json", err
}

// send writes the reply. If cut is set, it breaks the connection after the first half of the body or, if the reply has
// no body, without writing anything.
func (r reply) send(writer http.ResponseWriter, cut bool) {
	content, contentType, err := r.encode()
	if err != nil {
		r = fail(http.StatusInternalServerError, "Unexpected server-side error")
		content, contentType, _ = r.encode()
	}
	for name, value := range r.header {
		writer.Header().Set(name, value)
	}
	if contentType != "" {
		writer.Header().Set("Content-Type", contentType)
		writer.Header().Set("Content-Length", strconv.Itoa(len(content)))
	}
	if sent, ok := r.body.(problem); ok {
		writer.Header().Set("x-request-id", sent.RequestID)
	}
	if cut && len(content) == 0 {
		panic(http.ErrAbortHandler) // there is nothing to cut: the whole reply is lost
	}
	writer.WriteHeader(r.status)
	if cut {
		content = content[:len(content)/2]
	}
	_, _ = writer.Write(content) // it doesn't matter if the client has gone
	if cut {
		_ = http.NewResponseController(writer).Flush()
		panic(http.ErrAbortHandler) // net/http's way to break a connection
	}
}
