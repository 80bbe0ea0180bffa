/**
 * Keeps one certificate of the kubelet fresh (L5): asks for a new one in time, keeps it on disk, tells those who use it. A failed attempt is repeated,
 * ever more slowly. Upstream: client-go/util/certificate/certificate_manager.go, kubelet/certificate/kubelet.go (v1.36).
 */
import type { Component } from '#base/component'
import type { Client } from '#client/client'
import type { ProcessTools } from '../../layouts/processTools.ts'
import type { WantedCertificate } from '../../pki/certificateRequest.ts'
import type { KeyPair } from '../../pki/certificates.ts'
import { type CertificateStore, rotationDueMs, validityOf } from './certificateStore.ts'

export interface CertificateManagerOptions {
  /** client or server: in metrics and the log. */
  readonly name: 'client' | 'server'
  readonly store: CertificateStore
  readonly client: () => Client
  readonly wanted: () => WantedCertificate
  readonly tools: ProcessTools
  /** A new one is there. */
  readonly onRenewed: (pair: KeyPair) => void
}

const firstRetryMs = 2000
const longestRetryMs = 128_000
/** Timers of more than some weeks do not work, and the clock may be set. */
const lookEveryMs = 3_600_000

/** Asks at once when there is none. */
export function createCertificateManager({ name, store, client, wanted, tools, onRenewed }: CertificateManagerOptions): Component {
  const { clock, random, log, metrics } = tools
  const failures = metrics.counter({
    name: name === 'client' ? 'kubelet_certificate_manager_client_expiration_renew_errors' : 'kubelet_server_expiration_renew_errors',
    help: 'How often a certificate could not be renewed.',
  })
  const ttl = metrics.gauge({
    name: `kubelet_certificate_manager_${name}_ttl_seconds`,
    help: 'How much longer the certificate is good, in seconds; below 0: no longer.',
  })
  const renew = async (signal: AbortSignal) => {
    for (let pauseMs = firstRetryMs; !signal.aborted; pauseMs = Math.min(longestRetryMs, pauseMs * 2)) {
      try {
        const { requestCertificate } = await import('../../pki/certificateRequest.ts')
        const pair = await requestCertificate(client(), wanted(), clock, signal)
        await store.update(pair, clock.now())
        log.info('A certificate was issued', { certificate: name, file: store.currentPath })
        onRenewed(pair)
        return
      } catch (error) {
        if (signal.aborted) return
        failures.inc()
        log.warn('Asking for a certificate failed', { certificate: name, error: (error as Error).message })
        await clock.sleep(pauseMs, signal).catch(() => {})
      }
    }
  }
  return {
    name: `${name} certificate`,
    async run(signal) {
      // One throw for the process: each look must come to the same day.
      const chance = random.next()
      while (!signal.aborted) {
        const pair = await store.current()
        if (pair) {
          const validity = validityOf(pair.cert)
          const dueMs = rotationDueMs(validity, chance)
          ttl.set(Math.floor((validity.untilMs - clock.now()) / 1000))
          log.v(4).info('Certificate rotation is due', { certificate: name, at: new Date(dueMs).toISOString() })
          if (dueMs > clock.now()) {
            await clock.sleep(Math.min(dueMs - clock.now(), lookEveryMs), signal).catch(() => {})
            continue
          }
        }
        await renew(signal)
      }
    },
  }
}
