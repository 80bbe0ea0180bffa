/** What commands do to the user's machine besides clusters (L5): programs on the terminal, certificates and files for servers on localhost. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Clock } from '#base/clock'
import type { LocalPrograms } from '#cli/command'
import { plugins } from './credentialPlugins.ts'

const validDays = 30

export function createLocalPrograms(clock: Clock): LocalPrograms {
  return {
    plugins,
    pageFolder: fileURLToPath(new URL('./ui', import.meta.url)),
    run: (command, args, env) =>
      new Promise((resolve, reject) => {
        const child = spawn(command, [...args], { stdio: 'inherit', env: { ...process.env, ...env } })
        child.once('error', (error: NodeJS.ErrnoException) => (error.code === 'ENOENT' ? resolve(undefined) : reject(error)))
        child.once('close', (code, signal) => resolve(code ?? 128 + (signal ? constants.signals[signal] : 0)))
      }),
    async certificate() {
      const { localhostCertificate } = await import('./pki/localhostCertificate.ts')
      const { cert, key } = localhostCertificate('skiff-localhost', clock.now(), validDays)
      return { cert, key, ca: cert }
    },
    directory() {
      const directory = mkdtempSync(path.join(tmpdir(), 'skiff-'))
      process.once('exit', () => rmSync(directory, { recursive: true, force: true }))
      process.once('SIGTERM', () => process.exit(128 + constants.signals.SIGTERM))
      return directory
    },
    // Its callback comes when the data has left this process.
    print: (data) => new Promise((resolve) => process.stdout.write(data, () => resolve())),
    exitWith(code) {
      process.exitCode = code
    },
  }
}
