package digitalocean

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/digitalocean/godo"
	. "github.com/onsi/gomega"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
)

func TestTranslate(t *testing.T) {
	const json, page = "application/json; charset=utf-8", "text/html"
	tests := map[string]struct {
		status  int
		kind    string
		problem cloud.Problem
	}{
		"the API finds nothing":          {status: http.StatusNotFound, kind: json, problem: cloud.NotFound},
		"a proxy finds nothing":          {status: http.StatusNotFound, kind: page, problem: cloud.Unavailable},
		"the token is wrong":             {status: http.StatusUnauthorized, kind: json, problem: cloud.Unauthorized},
		"the token may not do this":      {status: http.StatusForbidden, kind: json, problem: cloud.Unauthorized},
		"the request makes no sense":     {status: http.StatusBadRequest, kind: json, problem: cloud.Refused},
		"the cloud won't do this":        {status: http.StatusUnprocessableEntity, kind: json, problem: cloud.Refused},
		"there were too many requests":   {status: http.StatusTooManyRequests, kind: json, problem: cloud.Busy},
		"the cloud has failed":           {status: http.StatusInternalServerError, kind: json, problem: cloud.Unavailable},
		"a proxy does not get an answer": {status: http.StatusBadGateway, kind: page, problem: cloud.Unavailable},
		"the cloud is down":              {status: http.StatusServiceUnavailable, kind: json, problem: cloud.Unavailable},
		"the answer is somewhere else":   {status: http.StatusTemporaryRedirect, kind: page, problem: cloud.Unavailable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			response := &http.Response{StatusCode: test.status, Header: http.Header{"Content-Type": {test.kind}}}
			err := translate(fmt.Errorf("get it: %w", &godo.ErrorResponse{Response: response, Message: "what the cloud says"}))
			answer, answered := errors.AsType[*cloud.Error](err)
			g.Expect(answered).To(BeTrue(), "expected a *cloud.Error, found: %v, see translate in request.go", err)
			g.Expect(answer.Problem).To(Equal(test.problem), "see problemOf in request.go")
		})
	}
	NewWithT(t).Expect(translate(http.ErrServerClosed)).To(Equal(http.ErrServerClosed), "without an answer there is nothing to translate")
}

func TestRetryAfter(t *testing.T) {
	const now = 1700000000
	tests := map[string]struct {
		header, remaining, reset string
		want                     time.Duration
	}{
		"some seconds":                          {header: "7", want: 7 * time.Second},
		"nothing":                               {},
		"a date":                                {header: "Wed, 21 Oct 2026 07:28:00 GMT"},
		"a negative number":                     {header: "-1"},
		"two days":                              {header: "172800", want: time.Hour},
		"a huge number":                         {header: "9223372036854775807", want: time.Hour},
		"the limit per hour":                    {remaining: "0", reset: "1700000090", want: 90 * time.Second},
		"the limit per minute takes precedence": {header: "7", remaining: "0", reset: "1700000090", want: 7 * time.Second},
		"requests remain":                       {remaining: "4816", reset: "1700000090"},
		"a reset time in the past":              {remaining: "0", reset: "1699999999"},
		"a reset time in the far future":        {remaining: "0", reset: "9223372036854775807", want: time.Hour},
		"no reset time":                         {remaining: "0"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			header := http.Header{}
			for name, value := range map[string]string{"Retry-After": test.header, "ratelimit-remaining": test.remaining, "ratelimit-reset": test.reset} {
				if value != "" {
					header.Set(name, value)
				}
			}
			NewWithT(t).Expect(RetryAfter(header, time.Unix(now, 0))).To(Equal(test.want), "see RetryAfter in request.go")
		})
	}
}
