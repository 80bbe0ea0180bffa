/**
 * The certificate of a component's port when no flag names one (L5): signed by an authority made for it alone, for localhost and the host's name.
 * Upstream: MaybeDefaultWithSelfSignedCerts of apiserver/pkg/server/options/serving.go (v1.36).
 */
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { makeDirectory, writeFileAtomic } from '#host/files'
import { UsageError } from '../apiserver/options/flags.ts'
import { pairOf } from '../apiserver/options/namedFiles.ts'
import type { KeyPair } from '../pki/certificates.ts'

const validDays = 365

/** @param dir where it is kept, as NAME.crt and NAME.key; empty: nowhere. What is there already is taken. */
export async function servingCertificate(name: string, host: string, dir: string, nowMs: number): Promise<KeyPair> {
  const [certFile, keyFile] = [path.join(dir, `${name}.crt`), path.join(dir, `${name}.key`)]
  const found = dir === '' ? undefined : await readPair(certFile, keyFile)
  if (found) return found
  const { createAuthority, issueCertificate } = await import('../pki/certificates.ts')
  const authority = await createAuthority(`${name}-ca@${Math.floor(nowMs / 1000)}`, nowMs, validDays)
  const hosts = [...new Set(['localhost', '127.0.0.1', os.hostname(), ...(/^(0\.0\.0\.0|::)$/.test(host) ? [] : [host])])]
  const leaf = await issueCertificate(authority, { commonName: `${name}@${Math.floor(nowMs / 1000)}`, usage: 'server', hosts, validDays }, nowMs)
  const made = { cert: `${leaf.cert.trim()}\n${authority.cert}`, key: leaf.key }
  if (dir !== '') {
    await makeDirectory(dir, 0o700)
    await writeFileAtomic(keyFile, made.key, 0o600)
    await writeFileAtomic(certFile, made.cert, 0o644)
  }
  return made
}

async function readPair(certFile: string, keyFile: string): Promise<KeyPair | undefined> {
  const texts = await Promise.all([certFile, keyFile].map((file) => fs.readFile(file, 'utf8').catch(() => undefined)))
  if (texts.includes(undefined)) return undefined
  try {
    return pairOf(texts as string[])
  } catch (error) {
    throw new UsageError([`${certFile}: ${(error as Error).message}`])
  }
}
