/** An image with PostgreSQL from Debian's packages (tests only). */
import { execFileSync } from 'node:child_process'
import { debianImage } from '../debianImage.ts'

export const postgresUser = 999
export const volume = '/var/lib/postgresql/data'

/** Documentation, and code for the compiler that the image leaves out. */
const unused = (version: string) => ['usr/share/doc', 'usr/share/man', 'usr/share/locale', 'usr/share/lintian', `usr/lib/postgresql/${version}/lib/bitcode`]
const without =
  /^(locales.*|debconf.*|cdebconf|postgresql-(client-)?common|ssl-cert|sensible-utils|libllvm.*|init-system-helpers|perl.*|adduser|passwd|dpkg|tar|.*-common)$/
const programs = ['cat', 'chmod', 'echo', 'mv', 'rm', 'sh', 'sleep']

/** The version that Debian's metapackage depends on. */
export function postgresVersion(): string {
  try {
    const text = execFileSync('apt-cache', ['depends', 'postgresql'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
    return /Depends: postgresql-(\d+)$/m.exec(text)?.[1] ?? '15'
  } catch {
    return '15'
  }
}

/** The tar of the image. @param command from the directory of PostgreSQL's programs, which is in the PATH @throws PackagesMissing */
export function postgresImage(name: string, command: (programsAt: string) => readonly string[]): Promise<string> {
  const version = postgresVersion()
  const programsAt = `/usr/lib/postgresql/${version}/bin`
  const line = (text: string) => new TextEncoder().encode(`${text}\n`)
  return debianImage({
    name,
    packages: [`postgresql-${version}`, 'busybox-static'],
    without,
    prune: unused(version),
    command: command(programsAt),
    environment: [`PATH=${programsAt}:/usr/bin:/bin`, 'TZ=UTC'],
    user: String(postgresUser),
    files: [
      ...programs.map((program) => ({ path: `bin/${program}`, type: 'symlink' as const, target: 'busybox' })),
      { path: 'tmp/', type: 'directory', mode: 0o1777 },
      { path: 'etc/passwd', type: 'file', data: line(`postgres:x:${postgresUser}:${postgresUser}::${volume}:/bin/sh`) },
      { path: 'etc/group', type: 'file', data: line(`postgres:x:${postgresUser}:`) },
    ],
  })
}
