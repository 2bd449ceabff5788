package doks

import (
	"net/http"
	"net/url"
	"strconv"
)

const (
	defaultPerPage = 20
	largestPerPage = 200
)

// pageLinks are a page's links to other pages. Pages is nil if there are none.
type pageLinks struct {
	Pages *pages `json:"pages,omitempty"`
}

type pages struct {
	First string `json:"first,omitempty"`
	Prev  string `json:"prev,omitempty"`
	Next  string `json:"next,omitempty"`
	Last  string `json:"last,omitempty"`
}

// paginate returns the page that a request asks for. It uses the default in place of an invalid number, and limits
// per_page to largestPerPage. A page past the end is empty.
func paginate[T any](all []T, request *http.Request) ([]T, pageLinks) {
	query := request.URL.Query()
	perPage := min(number(query, "per_page", defaultPerPage), largestPerPage)
	page := number(query, "page", 1)
	last := max((len(all)+perPage-1)/perPage, 1)
	if page > last {
		return []T{}, linksAround(request, last+1, last, perPage)
	}
	start := (page - 1) * perPage
	return all[start:min(start+perPage, len(all))], linksAround(request, page, last, perPage)
}

// number reads a positive number from the query.
func number(query url.Values, name string, otherwise int) int {
	value, err := strconv.Atoi(query.Get(name))
	if err != nil || value < 1 {
		return otherwise
	}
	return value
}

func linksAround(request *http.Request, page, last, perPage int) pageLinks {
	if last == 1 && page == 1 {
		return pageLinks{}
	}
	found := &pages{}
	if page < last {
		found.Next, found.Last = pageURL(request, page+1, perPage), pageURL(request, last, perPage)
	}
	if page > 1 {
		found.First, found.Prev = pageURL(request, 1, perPage), pageURL(request, page-1, perPage)
	}
	return pageLinks{Pages: found}
}

// pageURL returns an absolute URL, with the address that the client used for this server.
func pageURL(request *http.Request, page, perPage int) string {
	target := url.URL{Scheme: "http", Host: request.Host, Path: request.URL.Path}
	if request.TLS != nil {
		target.Scheme = "https"
	}
	target.RawQuery = url.Values{"page": {strconv.Itoa(page)}, "per_page": {strconv.Itoa(perPage)}}.Encode()
	return target.String()
}
