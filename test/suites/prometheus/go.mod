module skiff.dev/suites/prometheus

go 1.26.0
