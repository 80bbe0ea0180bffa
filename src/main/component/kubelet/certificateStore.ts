/**
 * A kubelet's certificates on disk (L5): each in a dated file with its key, and NAME-current.pem pointing to the newest, as kubeadm and monitoring
 * expect. Upstream: client-go/util/certificate/certificate_store.go (v1.36).
 */
import { X509Certificate } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { makeDirectory, writeFileAtomic } from '#host/files'
import { pairOf } from '../../apiserver/options/namedFiles.ts'
import type { KeyPair } from '../../pki/certificates.ts'

export interface CertificateStore {
  /** What -current.pem is called. */
  readonly currentPath: string
  /** Undefined: there is none that can be used. */
  current(): Promise<KeyPair | undefined>
  update(pair: KeyPair, nowMs: number): Promise<void>
}

/** @param name kubelet-client or kubelet-server */
export function createCertificateStore(directory: string, name: string): CertificateStore {
  const currentPath = path.join(directory, `${name}-current.pem`)
  return {
    currentPath,
    async current() {
      const text = await fs.readFile(currentPath, 'utf8').catch(() => '')
      const key = /-----BEGIN ([A-Z ]*)PRIVATE KEY-----[^-]+-----END \1PRIVATE KEY-----\n?/.exec(text)?.[0]
      const cert = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?/g)?.join('')
      if (!key || !cert) return undefined
      try {
        return pairOf([cert, key])
      } catch {
        return undefined
      }
    },
    async update({ cert, key }, nowMs) {
      await makeDirectory(directory, 0o700)
      const stamp = new Date(nowMs).toISOString().slice(0, 19).replace('T', '-').replaceAll(':', '-')
      const file = `${name}-${stamp}.pem`
      await writeFileAtomic(path.join(directory, file), `${cert.trim()}\n${key.trim()}\n`, 0o600)
      const next = path.join(directory, `.${name}-updated.pem`)
      await fs.rm(next, { force: true })
      await fs.symlink(file, next)
      await fs.rename(next, currentPath)
    },
  }
}

export interface Validity {
  readonly fromMs: number
  readonly untilMs: number
}

/** Validity of the first certificate in the text. */
export function validityOf(cert: string): Validity {
  const { validFrom, validTo } = new X509Certificate(cert)
  return { fromMs: Date.parse(validFrom), untilMs: Date.parse(validTo) }
}

/** When to ask for the next: after 70 to 90 % of its time, so that not all nodes ask at once. @param chance between 0 and 1 */
export function rotationDueMs({ fromMs, untilMs }: Validity, chance: number): number {
  return fromMs + (untilMs - fromMs) * (0.7 + 0.2 * chance)
}
