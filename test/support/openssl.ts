/** Certificates made by the real openssl, as an administrator would: authorities, and what they sign, in a folder that goes with the test. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Certificate {
  /** PEM. */
  readonly cert: string
  readonly key: string
}

export interface CertificateOptions {
  /** As openssl writes subjects: /CN=jane/O=dev. An attribute `userUid` is there too. */
  readonly subject: string
  /** Default clientAuth. */
  readonly usage?: 'clientAuth' | 'serverAuth' | 'serverAuth,clientAuth'
  readonly isAuthority?: boolean
  /** Valid from and to, as openssl has times: 20200101000000Z. Default: from now for a day. */
  readonly from?: string
  readonly to?: string
  /** The digest of the signature; default sha256. */
  readonly digest?: 'sha1'
  /** Subject alternative names, such as IP:127.0.0.1. */
  readonly names?: string
}

export interface OpenSsl {
  readonly folder: string
  /** A file with this text: its path. */
  file(name: string, text: string): string
  authority(commonName: string): Certificate
  sign(authority: Certificate, options: CertificateOptions): Certificate
  remove(): void
}

const configuration = `oid_section = oids
[oids]
userUid = 1.3.6.1.4.1.57683.2
[req]
distinguished_name = dn
[dn]
[ca]
default_ca = own
[own]
database = index.txt
new_certs_dir = .
serial = serial
policy = any
copy_extensions = copy
preserve = yes
unique_subject = no
rand_serial = yes
[any]
commonName = optional
organizationName = optional
userUid = optional
`

export function openSsl(): OpenSsl {
  const folder = mkdtempSync(join(tmpdir(), 'skiff-openssl-'))
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text, { mode: 0o600 })
    return join(folder, name)
  }
  const run = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  const read = (name: string) => readFileSync(join(folder, name), 'utf8')
  file('openssl.cnf', configuration)
  file('index.txt', '')
  let made = 0
  const make = (options: CertificateOptions, authority?: Certificate): Certificate => {
    const name = `c${made++}`
    const extensions = options.isAuthority
      ? 'basicConstraints=critical,CA:TRUE\nkeyUsage=keyCertSign,digitalSignature'
      : `basicConstraints=CA:FALSE\nextendedKeyUsage=${options.usage ?? 'clientAuth'}${options.names ? `\nsubjectAltName=${options.names}` : ''}`
    file(`${name}.ext`, extensions)
    run('req', '-new', '-newkey', 'rsa:2048', '-nodes', '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', options.subject, '-config', 'openssl.cnf')
    const times = options.from && options.to ? ['-startdate', options.from, '-enddate', options.to] : ['-days', '1']
    const signer = authority
      ? ['-cert', file(`${name}.ca`, authority.cert), '-keyfile', file(`${name}.cakey`, authority.key)]
      : ['-selfsign', '-keyfile', `${name}.key`]
    const digest = ['-md', options.digest ?? 'sha256']
    run(
      'ca',
      '-batch',
      '-notext',
      '-config',
      'openssl.cnf',
      ...digest,
      ...signer,
      ...times,
      '-in',
      `${name}.csr`,
      '-out',
      `${name}.crt`,
      '-extfile',
      `${name}.ext`,
    )
    return { cert: read(`${name}.crt`), key: read(`${name}.key`) }
  }
  return {
    folder,
    file,
    authority: (commonName) => make({ subject: `/CN=${commonName}`, isAuthority: true }),
    sign: (authority, options) => make(options, authority),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
