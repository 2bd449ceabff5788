//go:build e2e

package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
)

// getMetrics asks for the metrics by a scheme, http or https, with a token if there is one, and
// returns the status code and the body.
func getMetrics(ctx context.Context, scheme, token string) (status int, body string, err error) {
	err = forward(ctx, "service/password-operator-controller-manager-metrics-service", "8443", func(ctx context.Context, address string) error {
		status, body, err = get(ctx, scheme+"://"+address+"/metrics", token)
		return err
	})
	return status, body, err
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
	kubectl(ctx, "create", "serviceaccount", account, "--namespace="+passwordNamespace)
	return strings.TrimSpace(kubectl(ctx, "create", "token", account, "--namespace="+passwordNamespace))
}
