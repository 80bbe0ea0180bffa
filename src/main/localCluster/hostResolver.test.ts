import assert from 'node:assert/strict'
import { test } from 'node:test'
import { upstreamServers } from '#dns/plugins/forward'
import { hostResolvConf } from './hostResolver.ts'

const stub = 'nameserver 127.0.0.53\noptions edns0\n'
const resolved = '/run/systemd/resolve/resolv.conf'
const networkManager = '/run/NetworkManager/no-stub-resolv.conf'
const manySearches = `search ${Array.from({ length: 40 }, (_, index) => `a${index}.example`).join(' ')}`

/** Shapes of a host's resolv.conf, and the servers that nodes ask. */
const shapes: readonly { readonly name: string; readonly files: Readonly<Record<string, string>>; readonly want: readonly string[] }[] = [
  {
    name: 'servers of a network',
    files: { '/etc/resolv.conf': 'search example\nnameserver 192.0.2.1\nnameserver 192.0.2.2\n', [resolved]: 'nameserver 192.0.2.9' },
    want: ['192.0.2.1', '192.0.2.2'],
  },
  {
    name: 'the stub of systemd-resolved',
    files: { '/etc/resolv.conf': stub, [resolved]: 'nameserver 192.0.2.9\n', [networkManager]: 'nameserver 192.0.2.8' },
    want: ['192.0.2.9'],
  },
  {
    name: 'the stub of dnsmasq under NetworkManager',
    files: { '/etc/resolv.conf': 'nameserver 127.0.0.1\n', [networkManager]: 'nameserver 192.0.2.8\n' },
    want: ['192.0.2.8'],
  },
  { name: 'a stub that nothing is known of', files: { '/etc/resolv.conf': `${stub}search example\n`, [resolved]: 'nameserver 127.0.0.1\n' }, want: [] },
  { name: 'no file', files: {}, want: [] },
  { name: 'an empty file', files: { '/etc/resolv.conf': '' }, want: [] },
  { name: 'IPv6 servers, the own one among them', files: { '/etc/resolv.conf': 'nameserver ::1\nnameserver 2001:db8::1\n' }, want: ['2001:db8::1'] },
  { name: 'forty search domains', files: { '/etc/resolv.conf': `${manySearches}\nnameserver 192.0.2.1\n` }, want: ['192.0.2.1'] },
]
for (const { name, files, want } of shapes)
  test(`SVC-12 nodes ask the servers of a host whose resolv.conf has ${name}: ${want.join(', ') || 'none'}`, async () => {
    const text = await hostResolvConf(async (file) => files[file])
    assert.deepEqual(upstreamServers(text), want)
    assert.doesNotMatch(text, /nameserver (127|::1)/)
  })
