/**
 * The cluster's certificates while it runs (L5): its holders see renewed certificates without a restart. They are checked twice a day and on request,
 * long before any expires. Upstream: the dynamic certificates of apiserver/pkg/server/dynamiccertificates, kubeadm certs renew.
 */
import { abortScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import type { Logger } from '#base/log'
import type { KeyPair } from './certificates.ts'
import type { Pki } from './pki.ts'

export interface LivePki {
  /** Always the newest: read from it when it is needed, do not copy. */
  readonly pki: Pki
  /** `apply` runs after every look, whether anything changed or not, so it must be cheap and change nothing twice. @returns ends that */
  onLook(apply: () => Promise<void> | void): () => void
  /** Renews due certificates soon, and calls the appliers. */
  look(): void
  /** Looks regularly. */
  readonly component: Component
}

const lookEveryMs = 12 * 3_600_000

/** `load` gives the certificates as they are to be now, as ensurePki does. */
export function createLivePki(first: Pki, load: () => Promise<Pki>, { clock, log }: { readonly clock: Clock; readonly log: Logger }): LivePki {
  let current = first
  const appliers = new Set<() => Promise<void> | void>()
  let wake = () => {}
  const pair = (name: (typeof pairs)[number]): KeyPair => live(() => current[name])
  const look = async () => {
    const renewed = await load()
    for (const name of pairs) if (renewed[name].cert !== current[name].cert) log.info('Renewed a certificate', { certificate: name })
    current = renewed
    const failures: unknown[] = []
    // One that fails, and is tried again, does not keep the others from what they look for, such as an addon that is off now.
    for (const apply of appliers) {
      try {
        await apply()
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  }
  return {
    pki: {
      ca: pair('ca'),
      frontProxyCa: pair('frontProxyCa'),
      apiserver: pair('apiserver'),
      apiserverKubeletClient: pair('apiserverKubeletClient'),
      frontProxyClient: pair('frontProxyClient'),
      admin: pair('admin'),
      serviceAccountKey: first.serviceAccountKey,
    },
    onLook: (apply) => {
      appliers.add(apply)
      return () => void appliers.delete(apply)
    },
    look: () => wake(),
    component: {
      name: 'certificates',
      async run(signal) {
        while (!signal.aborted) {
          using due = abortScope(signal)
          wake = () => due.abort()
          await look()
          await clock.sleep(lookEveryMs, due.signal).catch(() => {})
        }
      },
    },
  }
}

/** An object whose members, those of the first `read`, are read again at each access. Spreading it copies their present values. */
export function live<T extends object>(read: () => T): T {
  const view = {}
  for (const key of Object.keys(read())) Object.defineProperty(view, key, { enumerable: true, get: () => read()[key as keyof T] })
  return view as T
}

const pairs = ['ca', 'frontProxyCa', 'apiserver', 'apiserverKubeletClient', 'frontProxyClient', 'admin'] as const
