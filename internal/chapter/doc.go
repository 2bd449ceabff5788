/*
Package chapter reads the chapters of the workshop. A chapter is a Markdown file. Its console fences are played against a
cluster (package play), and its code fences are filled from source files (package snippet).

This page is the reference for authors. Parsing is strict: anything that can't be understood is an error with file and
line, and all errors in a file are reported together.

# Headings

While a chapter is played, its headings of level 1 to 3 (#, ##, ###) are shown. A heading and the console fences up to
the next heading are a step. The number at the start of a heading is the step's number, which --from=1.3 refers to:

	## 1.3 Columns

# Console fences

	```console
	$ kubectl get flightticket
	NAME    FROM   TO    AGE
	first   ICN    HND   [..]s
	$ kubectl get flightticket nobody
	Error from server (NotFound): [..]
	? 1
	```

"$ " starts a command. The command ends where a POSIX shell would run it: \ at the end of a line, an open quote, a
heredoc, or an if without its fi continues it on the next line. A command that a POSIX shell can't read is an error. A
continued line may begin with the prompt "> ", which is removed, except in a heredoc. If such a line begins with a
redirection, write ">file", without a space. Only a heredoc may contain a blank line, or a line that starts with "$ ".

The lines up to the next command are the expected output:

  - [..] matches any text within a line, even none.
  - A line ... matches any number of lines, even none.
  - Everything else must be printed literally, apart from white space at the end of a line.
  - If there are no lines, the command must print nothing. Write ... if its output does not matter.

Standard output and standard error are one stream. Before the real output is compared, the player removes colours, blank
lines at the end, and what kubectl logs about a watch that it has ended. Some lines can't be written literally, because
they mean something here: blank lines, the line "...", and lines that start with "$ " or "? ". Write [..] for such a
line, or for its beginning.

"? N" after the output expects exit status N, 0 to 255. Without it, the status must be 0, unless the fence has
expect=error.

# Words after console

	timeout=DURATION      each command may take this long, such as 30s or 5m, instead of 2 minutes
	expect=error          each command must fail; "? N" says with which status
	cluster=NAME[,NAME]   play only on these clusters (embedded, kind, current); on others, count the fence as skipped
	cleanup               also run, without comparing, if the play ends before this fence does
	makes="KIND/NAME …"   with cleanup: what the chapter makes outside its own namespaces, and these namespaces, as
	                      kubectl writes them; * is any text. If one of them exists already, the chapter isn't
	                      played, because its cleanup would delete it
	background=NAME ready="TEXT"
	                      exactly one command, without expected output, that keeps running; the chapter continues
	                      once the command has printed TEXT, and fails if that takes longer than the time limit
	own="COMMAND"         with a learner's own copy of a stage, run this command instead, without comparing its output,
	                      in the section that the learner solved last
	stop=NAME             first stop this background process; such a fence needs no command

If a background process ends before it is stopped, the chapter fails before the next command or at the end. To stop a
process, the player sends SIGINT, as Ctrl-C does, SIGTERM after 10 seconds, and SIGKILL after 5 more, to the process and
the rest of its process group. At the end of a chapter, the player stops all groups that are still running. If the
play ended early, the player first runs the cleanup fences that it has not played to their end, because deleting may
need the operator. They run in the current working directory, so they must not depend on a cd in a step that was not
played.

# Hidden blocks

	<!-- console timeout=1m
	$ until kubectl get lease foo; do sleep 1; done
	...
	-->

A comment that starts with the word console is played like a fence with the same words, but readers of the page don't see
it. Use it for what only the player needs, such as waiting where a person would look. It ends with --> on a line of its
own.

# The shell

Commands behave as if typed into one POSIX shell: the working directory, variables (exported or not) and $? carry over,
within a fence and between fences. Functions, aliases, traps, shell options, jobs and $! do not, because each command
runs in its own sh. Each sh has its own process group, so that it can be ended with its children. It is sh, not bash: no
arrays, no [[. Standard input is empty.

A child that a command leaves running (&) is stopped at the end of the chapter. Output that it prints after its command
has ended may be lost. A child that leaves its process group, as daemons do, runs until the whole play ends: use
background= for it.

# Fences filled from source files

	```go file=01-crd-only/api/types.go symbol=FlightTicket
	```go file=02-clientgo-foo/sync.go symbol=controller.sync step=2.9c
	```yaml file=01-crd-only/crd.yaml key=spec.versions[0].schema
	```diff file=02-clientgo-foo/sync.go symbol=controller.sync step=2.9c
	```makefile file=Makefile

`make generate` writes the body, and `make verify` fails if it is stale. The file's path is relative to the root of the
repository. The symbol is a function, a type, a constant, a variable, or a method, which is written Type.Method. It is
shown with its doc comment. A key is shown with the comments directly above it. A part of a key that contains dots is
written ["a.b/c"]. Without a symbol or a key, the fence shows the whole file. With a step of the exercises, it shows the
code as it is after this step, and otherwise the finished code. A diff shows what the step adds (+) and removes (-), with
the lines around it.

# Other fences

Fences follow CommonMark. A fence's indentation, as in a list, is removed. A fence can't start on the line of a list
marker or in a quotation. Text that looks like a fence but isn't one, because of its indentation or because it is within
HTML, is an error. A fence for sh, bash or another shell is an error, and so is a fence without a language that has a
"$ " line, because readers would think that it is checked. Use console or text instead. Fences in other languages, with
nothing after the language, are left alone, and so are HTML comments that aren't hidden console blocks, with everything
in them.
*/
package chapter
