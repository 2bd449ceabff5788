//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
)

// requestTimeout bounds a request for the metrics, with all that comes before it.
const requestTimeout = 30 * time.Second

// forwarding is the line in which kubectl tells the address that it forwards.
var forwarding = regexp.MustCompile(`^Forwarding from (127\.0\.0\.1:[0-9]+) `)

// getMetrics asks for the metrics by a scheme, http or https, with a token if there is one, and
// returns the status code and the body.
//
// Each request has a `kubectl port-forward` of its own: that ends when the manager cuts a connection.
func getMetrics(ctx context.Context, scheme, token string) (int, string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	forward := exec.CommandContext(ctx, "kubectl", "port-forward", "--namespace="+namespace,
		"service/guestbook-controller-manager-metrics-service", ":8443")
	forward.Stderr = GinkgoWriter
	output, err := forward.StdoutPipe()
	if err != nil {
		cancel()
		return 0, "", fmt.Errorf("connect to kubectl: %w", err)
	}
	if err := forward.Start(); err != nil {
		cancel()
		return 0, "", fmt.Errorf("start kubectl: %w", err)
	}
	defer func() {
		cancel()
		_ = forward.Wait() // always an error: kubectl was killed
	}()
	address, err := forwardedAddress(output)
	if err != nil {
		return 0, "", err
	}
	return get(ctx, scheme+"://"+address+"/metrics", token)
}

func forwardedAddress(output io.Reader) (string, error) {
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if match := forwarding.FindStringSubmatch(lines.Text()); match != nil {
			return match[1], nil
		}
	}
	return "", errors.Join(errors.New("kubectl forwards no port to the metrics"), lines.Err())
}

func get(ctx context.Context, url, token string) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", fmt.Errorf("make a request: %w", err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// The manager has made its certificate itself, so there is nothing to verify it by.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, "", fmt.Errorf("ask for the metrics: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, "", fmt.Errorf("read the metrics: %w", err)
	}
	return response.StatusCode, string(body), nil
}

// tokenOf makes a service account and returns a token of it.
func tokenOf(ctx context.Context, account string) string {
	GinkgoHelper()
	kubectl(ctx, "create", "serviceaccount", account, "--namespace="+guestbookNamespace)
	return strings.TrimSpace(kubectl(ctx, "create", "token", account, "--namespace="+guestbookNamespace))
}
