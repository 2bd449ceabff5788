package doks

import (
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"
)

// caller is the sender of a request.
type caller struct {
	// name stands in for the token in the journal and in the counts of requests.
	name     string
	known    bool
	readOnly bool
	// clustersOnly means that the token can't read the account.
	clustersOnly bool
}

// identify returns the caller to whom a request's token belongs. Without a Bearer token, or with one that isn't in the
// options, the caller's field known is false. identify compares each known token in constant time, so the response time
// doesn't reveal how much of a guess was right.
func (e *Emulator) identify(request *http.Request) caller {
	header := request.Header.Get("Authorization")
	if header == "" {
		return caller{name: "none"}
	}
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return caller{name: "unknown"}
	}
	if i := find(e.options.Tokens, token); i >= 0 {
		return caller{name: fmt.Sprintf("token-%d", i+1), known: true}
	}
	if i := find(e.options.ReadOnlyTokens, token); i >= 0 {
		return caller{name: fmt.Sprintf("read-only-%d", i+1), known: true, readOnly: true}
	}
	if i := find(e.options.ClusterTokens, token); i >= 0 {
		return caller{name: fmt.Sprintf("cluster-%d", i+1), known: true, clustersOnly: true}
	}
	return caller{name: "unknown"}
}

func find(tokens []string, token string) int {
	found := -1
	for i, each := range tokens {
		if subtle.ConstantTimeCompare([]byte(each), []byte(token)) == 1 {
			found = i
		}
	}
	return found
}

// conceal replaces the emulator's tokens in a string that people read: a client may have put one into a URL.
func (e *Emulator) conceal(text string) string {
	for _, token := range e.options.allTokens() {
		text = strings.ReplaceAll(text, token, "[token]")
	}
	return text
}
