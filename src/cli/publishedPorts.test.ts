import assert from 'node:assert/strict'
import { test } from 'node:test'
import { publishedPorts, publishedText } from './publishedPorts.ts'

test('SVC-02 --publish names ports of localhost and of the nodes, and the protocol', () => {
  const ports = publishedPorts(['8080:80', '5353:53/udp,443'])
  assert.deepEqual(ports, [
    { protocol: 'TCP', port: 8080, nodePort: 80 },
    { protocol: 'UDP', port: 5353, nodePort: 53 },
    { protocol: 'TCP', port: 443, nodePort: 443 },
  ])
  assert.equal(publishedText(ports ?? []), '8080:80,5353:53/udp,443:443')
  assert.equal(publishedPorts(undefined), undefined)
})

for (const [text, reason] of [
  ['80:', /expected PORT:NODEPORT/],
  ['0:80', /expected PORT:NODEPORT/],
  ['70000:80', /expected PORT:NODEPORT/],
  ['8080:80/sctp', /expected PORT:NODEPORT/],
  ['0.0.0.0:8080:80', /expected PORT:NODEPORT/],
  ['80,80:81', /port 80 of localhost is there twice/],
  [Array.from({ length: 65 }, (_, index) => index + 1).join(), /at most 64 ports/],
] as const)
  test(`SVC-02 --publish ${text.slice(0, 20)} is refused`, () => assert.throws(() => publishedPorts([text]), { exit: 'usage', message: reason }))
