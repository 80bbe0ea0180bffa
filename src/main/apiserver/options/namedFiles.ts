/** Reads files that flags name (L5). A file that cannot be read or used is an error of the command line. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { certificateBlocks } from '#base/pem'
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

/** A value made of files, which is made again while the server runs whenever they change and are valid together. */
export interface Followed<T> {
  readonly value: T
  /** Calls `changed` for every new value, and `refused` for a text that cannot be used; the previous value then stays. */
  follow(changed: () => void, refused: (error: Error) => void, signal: AbortSignal): void
}

/** @throws UsageError when a file cannot be read, or `make` refuses the texts */
export async function readFollowed<T>(
  paths: readonly string[],
  context: OptionContext,
  make: (texts: readonly string[]) => T,
): Promise<Followed<T | undefined>> {
  if (paths.includes('')) return { value: undefined, follow: () => {} }
  const texts = await Promise.all(paths.map(async (path) => (await readNamed(path, context)) ?? ''))
  let value = usable(() => make(texts))
  return {
    get value() {
      return value
    },
    follow(changed, refused, signal) {
      for (const [index, path] of paths.entries()) {
        context.file(path).follow((text) => {
          texts[index] = text
          try {
            value = make(texts)
          } catch (error) {
            return refused(error as Error)
          }
          changed()
        }, signal)
      }
    },
  }
}

/** Certificates of authorities, PEM. @throws Error when the text holds no certificate, or one that cannot be read */
export function authoritiesOf([text = '']: readonly string[]): string {
  const blocks = certificateBlocks(text)
  if (blocks.length === 0) throw new Error('data does not contain any valid RSA or ECDSA certificates')
  for (const block of blocks) new X509Certificate(block)
  return text
}

/** A certificate and its key, PEM. @throws Error when one cannot be parsed or the key is another certificate's, as while only one of the files is new */
export function pairOf([cert = '', key = '']: readonly string[]): { readonly cert: string; readonly key: string } {
  if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) throw new Error('tls: private key does not match public key')
  return { cert, key }
}
