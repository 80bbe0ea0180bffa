import assert from 'node:assert/strict'
import { test } from 'node:test'
import { targetOf } from './member.ts'

const targets = [
  { url: 'https://etcd.example', want: { target: 'etcd.example:443', isSecure: true } },
  { url: 'http://etcd.example', want: { target: 'etcd.example:80', isSecure: false } },
  { url: 'https://[::1]:2379', want: { target: '[::1]:2379', isSecure: true } },
  { url: 'unix:///run/etcd.sock', want: { target: 'unix:///run/etcd.sock', isSecure: false } },
]
for (const { url, want } of targets) {
  test(`a connection to ${url} goes to the port of the URL or of its scheme`, () => assert.deepEqual(targetOf(url), want))
}

test('an endpoint that is no http or https URL is refused by name', () => {
  for (const url of ['etcd.example:2379', 'ftp://etcd.example', '']) {
    assert.throws(() => targetOf(url), { message: `"${url}" is no endpoint of etcd: use http://HOST:PORT or https://HOST:PORT` }, url)
  }
})
