import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conntrackArgs, createConntrack } from './conntrack.ts'
import type { Exec, ExecOptions, ExecResult } from './exec.ts'
import { createNetworkNamespaces } from './netns.ts'

function recording(answer: Partial<ExecResult>): { exec: Exec; calls: { words: string[]; options: ExecOptions | undefined }[] } {
  const calls: { words: string[]; options: ExecOptions | undefined }[] = []
  const exec: Exec = {
    run: async (command, args, options) => {
      calls.push({ words: [command, ...args], options })
      return { code: 0, stdout: '', stderr: '', timedOut: false, ...answer }
    },
    spawn: () => {
      throw new Error('not used')
    },
  }
  return { exec, calls }
}

const conntrackCases = [
  {
    name: 'by service address and backend',
    filter: { protocol: 'udp', origDst: '10.96.0.10', dstNat: '10.0.0.2' },
    want: '-D -p udp --orig-dst 10.96.0.10 --dst-nat 10.0.0.2',
  },
  { name: 'by node port', filter: { protocol: 'udp', origPortDst: 30053 }, want: '-D -p udp --orig-port-dst 30053' },
  {
    name: 'by backend and its port',
    filter: { protocol: 'udp', dstNat: '10.0.0.2', replyPortSrc: 53 },
    want: '-D -p udp --reply-port-src 53 --dst-nat 10.0.0.2',
  },
  { name: 'with any backend', filter: { protocol: 'udp', isIpv6: true, dstNat: 'any' }, want: '-D -p udp -f ipv6 --dst-nat' },
  {
    name: 'TCP connections without an answer',
    filter: { protocol: 'tcp', state: 'SYN_SENT', dstNat: 'fd00::2' },
    want: '-D -p tcp -f ipv6 --state SYN_SENT --dst-nat fd00::2',
  },
  { name: 'IPv6 by node port', filter: { protocol: 'udp', isIpv6: true, origPortDst: 30053 }, want: '-D -p udp -f ipv6 --orig-port-dst 30053' },
  { name: 'IPv6', filter: { protocol: 'udp', origDst: 'fd00::1' }, want: '-D -p udp -f ipv6 --orig-dst fd00::1' },
] as const
for (const c of conntrackCases) test(`conntrack ${c.name}`, () => assert.equal(conntrackArgs(c.filter).join(' '), c.want))

test('nothing to delete is not an error; a missing program is', async () => {
  const none = recording({ code: 1, stderr: 'conntrack v1.4.7 (conntrack-tools): 0 flow entries have been deleted.' })
  assert.equal(await createConntrack(none.exec).delete({ protocol: 'udp' }), 0)
  const broken = recording({ code: -1, stderr: 'spawn conntrack ENOENT' })
  await assert.rejects(createConntrack(broken.exec).delete({ protocol: 'udp' }), /ENOENT/)
})

test('network namespaces are listed by name', async () => {
  const { exec } = recording({ stdout: '[{"name":"a","id":1},{"name":"b"}]' })
  assert.deepEqual(await createNetworkNamespaces(exec).list(), ['a', 'b'])
})
