import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exposition } from './exposition.ts'
import type { MetricFamily } from './metricFamily.ts'

const families: MetricFamily[] = [{ name: 'a_total', type: 'counter', help: 'A.', samples: [{ labels: '', value: 1 }] }]
const text = 'text/plain; version=0.0.4; charset=utf-8; escaping=underscores'
const openMetrics = 'application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores'
const protobuf = 'application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited; escaping=underscores'
const askForProtobuf = 'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited'

const cases: readonly { readonly name: string; readonly accept: string | undefined; readonly want: string }[] = [
  { name: 'no header', accept: undefined, want: text },
  { name: 'any type', accept: '*/*', want: text },
  { name: 'a browser', accept: 'text/html,application/xhtml+xml;q=0.9,*/*;q=0.8', want: text },
  { name: 'text of another version', accept: 'text/plain;version=0.0.5', want: text },
  { name: 'OpenMetrics', accept: 'application/openmetrics-text; version=1.0.0', want: openMetrics },
  { name: 'OpenMetrics without a version', accept: 'application/openmetrics-text', want: openMetrics.replace('1.0.0', '0.0.1') },
  { name: 'OpenMetrics of a later version', accept: 'application/openmetrics-text;version=2.0.0', want: text },
  {
    name: 'Prometheus 2',
    accept: 'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1',
    want: openMetrics,
  },
  { name: 'the better q', accept: 'application/openmetrics-text;version=1.0.0;q=0.3,text/plain;version=0.0.4;q=0.5', want: text },
  { name: 'protobuf', accept: askForProtobuf, want: protobuf },
  { name: 'protobuf as text', accept: askForProtobuf.replace('delimited', 'text'), want: text },
  { name: 'another message', accept: 'application/vnd.google.protobuf;proto=other;encoding=delimited', want: text },
  {
    name: 'Prometheus with native histograms',
    accept: `${askForProtobuf},application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1`,
    want: protobuf,
  },
  {
    name: 'Prometheus 3, which names an escaping',
    accept: 'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,*/*;q=0.1',
    want: openMetrics.replace('underscores', 'allow-utf-8'),
  },
  { name: 'an unknown escaping', accept: 'text/plain;escaping=x"y', want: text },
  { name: 'quoted parameters and upper case', accept: 'Application/OpenMetrics-Text; Version="1.0.0"', want: openMetrics },
]

for (const { name, accept, want } of cases)
  test(`OBS-01 the format of a scrape follows the Accept header as with promhttp: ${name}`, () => {
    assert.equal(exposition(families, accept).contentType, want)
  })

test('OBS-01 the body of a scrape has the form that its content type says, and a header of any length ends', () => {
  assert.equal(exposition(families, undefined).body, '# HELP a_total A.\n# TYPE a_total counter\na_total 1\n')
  assert.equal(exposition(families, 'application/openmetrics-text;version=1.0.0').body, '# HELP a A.\n# TYPE a counter\na_total 1.0\n# EOF\n')
  assert.ok(exposition(families, askForProtobuf).body instanceof Uint8Array)
  assert.equal(exposition(families, `${'a/b,'.repeat(100_000)}`).contentType, text)
  assert.equal(exposition(families, ['text/html', 'application/openmetrics-text;version=1.0.0']).contentType, openMetrics)
})
