/** Files that flags name (L5), and what is made of them: what is wrong with either is a fault of the command line. */
import { UsageError } from './flags.ts'
import type { OptionContext } from './optionGroup.ts'

/** The file's text; undefined when the flag is not set. @throws UsageError when it cannot be read */
export async function readNamed(path: string, context: OptionContext): Promise<string | undefined> {
  if (path === '') return undefined
  try {
    return await context.file(path).read()
  } catch (error) {
    throw new UsageError([(error as Error).message])
  }
}

/** @throws UsageError with the message of what `make` threw */
export function usable<T>(make: () => T): T {
  try {
    return make()
  } catch (error) {
    throw new UsageError([(error as Error).message])
  }
}
