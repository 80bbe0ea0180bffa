/** Programs that tests need and `make test` installs: scripts/packages.sh, as root on a system with apt. */
import { existsSync } from 'node:fs'
import path from 'node:path'

const directories = (process.env.PATH ?? '').split(path.delimiter)

export const isOnPath = (program: string, places: readonly string[] = directories) => places.some((directory) => existsSync(path.join(directory, program)))

/** Whether scripts/test.mjs runs the tests where scripts/packages.sh has installed what is missing before. */
function isInstalled(): boolean {
  return process.env.SKIFF_TEST_RUN !== undefined && process.platform === 'linux' && process.getuid?.() === 0 && isOnPath('apt-get')
}

/**
 * The reason why tests that need the program are skipped; false: it is there.
 * @param hasPackages whether the packages for tests must be there
 * @throws Error when the program is missing although they must be
 */
export function missingProgram(program: string, debianPackage: string, hasPackages = isInstalled()): string | false {
  if (isOnPath(program)) return false
  const reason = `${program} is not installed (Debian: ${debianPackage})`
  if (hasPackages) throw new Error(`${reason}, although scripts/packages.sh --tests installs it`)
  return reason
}
