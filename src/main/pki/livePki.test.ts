import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { noLog } from '#base/log'
import { VirtualClock } from '#base/virtualClock'
import { createLivePki, live } from './livePki.ts'
import { ensurePki, type Pki } from './pki.ts'

const day = 86_400_000
const pairs = ['ca', 'frontProxyCa', 'apiserver', 'apiserverKubeletClient', 'frontProxyClient', 'admin'] as const

async function started(t: TestContext) {
  const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-live-pki-'))
  const clock = new VirtualClock('2026-01-01T00:00:00Z')
  const load = () => ensurePki(dir, ['localhost'], clock.now())
  const certificates = createLivePki(await load(), load, { clock, log: noLog })
  const looks: number[] = []
  let looked = () => {}
  certificates.onLook(() => {
    looks.push(clock.now())
    looked()
  })
  const next = () => new Promise<void>((resolve) => (looked = resolve))
  const first = next()
  const stop = new AbortController()
  const running = certificates.component.run(stop.signal)
  t.after(async () => {
    stop.abort()
    await running
    await fs.rm(dir, { recursive: true })
  })
  await first
  return { clock, certificates, looks, next }
}

function assertValid(pki: Pki, nowMs: number): void {
  for (const name of pairs) {
    const { validFrom, validTo } = new X509Certificate(pki[name].cert)
    assert.ok(
      Date.parse(validFrom) <= nowMs && nowMs < Date.parse(validTo),
      `${name} at ${new Date(nowMs).toISOString()} is valid from ${validFrom} to ${validTo}`,
    )
  }
}

test('SDR-07 a holder of certificates that cannot take them up keeps no other from them, and ends the look with its error', async (t) => {
  const { certificates } = await started(t)
  const calls: string[] = []
  certificates.onLook(() => {
    calls.push('failing')
    throw new Error('no space')
  })
  certificates.onLook(() => void calls.push('other'))
  const stop = new AbortController()
  t.after(() => stop.abort())
  await assert.rejects(certificates.component.run(stop.signal), /no space/)
  assert.deepEqual(calls, ['failing', 'other'])
})

test('SDR-07 in 400 days of running, a month at a time, no certificate expires', async (t) => {
  const { clock, certificates, next } = await started(t)
  const first = certificates.pki.apiserver.cert
  for (let passed = 0; passed < 400; passed += 30) {
    const looked = next()
    await clock.advance(30 * day)
    await looked
    assertValid(certificates.pki, clock.now())
  }
  assert.notEqual(certificates.pki.apiserver.cert, first)
})

test('SDR-07 in 30 years neither, the authorities included', async (t) => {
  const { clock, certificates, next } = await started(t)
  for (let year = 0; year < 90; year++) {
    const looked = next()
    await clock.advance(120 * day)
    await looked
    assertValid(certificates.pki, clock.now())
  }
})

test('it looks at once when it is asked to', async (t) => {
  const { certificates, looks, next, clock } = await started(t)
  const looked = next()
  certificates.look()
  await looked
  assert.deepEqual(looks, [clock.now(), clock.now()])
})

test('a live object reads its members at each access; a copy keeps their values', () => {
  let n = 1
  const object = live(() => ({ n, twice: 2 * n }))
  const copy = { ...object }
  n = 5
  assert.deepEqual([object.n, object.twice, copy], [5, 10, { n: 1, twice: 2 }])
})
