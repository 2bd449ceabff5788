package digitalocean

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/digitalocean/godo"

	"example.com/operator-workshop/06-kluster-digitalocean/internal/cloud"
)

// unintelligible is the error for a successful response that contains no cluster, or not the requested one.
var unintelligible = &cloud.Error{Problem: cloud.Unavailable, Message: "the answer holds no cluster"}

// do sends a request and decodes the response into result, unless that is nil. It returns a *cloud.Error if the API
// returns an error.
func (a *Account) do(ctx context.Context, method, path string, body, result any) error {
	return translate(a.send(ctx, method, path, body, result))
}

// send is like do, but doesn't translate the library's errors.
func (a *Account) send(ctx context.Context, method, path string, body, result any) error {
	request, err := a.client.NewRequest(ctx, method, path, body)
	if err != nil {
		return fmt.Errorf("make the request: %w", err)
	}
	_, err = a.client.Do(ctx, request, result)
	return err
}

// translate converts the error that godo returns for an error response into a *cloud.Error. It returns other errors
// unchanged.
func translate(err error) error {
	answer, answered := errors.AsType[*godo.ErrorResponse](err)
	if !answered {
		return err
	}
	return &cloud.Error{
		Problem: problemOf(answer.Response),
		Message: messageOf(answer),
	}
}

// problemOf translates the status code of an error response. It returns NotFound only for a 404 from the API itself: a
// proxy's page proves nothing.
//
//workshop:step 6.8a
func problemOf(response *http.Response) cloud.Problem {
	switch status := response.StatusCode; {
	case status == http.StatusNotFound && isJSON(response):
		return cloud.NotFound
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return cloud.Unauthorized
	case status == http.StatusTooManyRequests:
		return cloud.Busy
	case status >= http.StatusInternalServerError, status == http.StatusNotFound, isRedirect(response):
		return cloud.Unavailable
	}
	return cloud.Refused
}

// orUnavailable turns NotFound into Unavailable, for requests that are not about an existing cluster: there, a 404
// means that the API isn't at this address.
func orUnavailable(err error) error {
	if !cloud.Is(err, cloud.NotFound) {
		return err
	}
	return &cloud.Error{Problem: cloud.Unavailable, Message: "404 Not Found: there is no such API at this address"}
}

func isRedirect(response *http.Response) bool { return response.StatusCode/100 == 3 }

func isJSON(response *http.Response) bool {
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

// messageOf returns the API's own message, or the status if there is none, as in a proxy's page. godo would use the
// whole page as the message. For a redirect, messageOf also says what to do.
func messageOf(answer *godo.ErrorResponse) string {
	if isRedirect(answer.Response) {
		return answer.Response.Status + ": the token is not sent to another address: name the API's own address in --do-api-url"
	}
	if isJSON(answer.Response) && answer.Message != "" {
		return answer.Message
	}
	return answer.Response.Status
}

// maxRetryAfter caps the wait that a response asks for. A longer one makes no sense, because the cloud counts requests
// by the hour.
const maxRetryAfter = time.Hour

// RetryAfter returns how long a response asks the client to wait, at most an hour, or zero if it doesn't ask. For the
// per-minute limit, the Retry-After header contains the number of seconds. For the hourly limit, only ratelimit-reset
// says when there is room for another request, as the Unix time in seconds; it counts only if no requests remain,
// because every response has this header.
//
//workshop:step 6.8a
func RetryAfter(header http.Header, now time.Time) time.Duration {
	seconds, err := strconv.ParseInt(header.Get("Retry-After"), 10, 64)
	if err != nil && header.Get("ratelimit-remaining") == "0" {
		var reset int64
		reset, err = strconv.ParseInt(header.Get("ratelimit-reset"), 10, 64)
		seconds = reset - now.Unix()
	}
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, int64(maxRetryAfter/time.Second))) * time.Second
}
