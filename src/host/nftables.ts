/** Loads nftables rules (L1): native syntax through `nft -f -`, one transaction a call; JSON only for reading. */
import { check, type Exec } from './exec.ts'

export interface Nftables {
  /** Applies a script as one transaction: all of it or nothing. */
  apply(script: string): Promise<void>
  /** `nft -j` followed by the words given: the `nftables` array of the answer. */
  list(...words: readonly string[]): Promise<readonly unknown[]>
  /** False when the program or the kernel's part is missing. */
  available(): Promise<boolean>
}

export function createNftables(exec: Exec, program = 'nft'): Nftables {
  return {
    apply: async (script) => {
      await check(exec, program, ['-f', '-'], { input: script })
    },
    list: async (...words) => {
      const text = await check(exec, program, ['-j', ...words])
      const parsed: unknown = text.trim() === '' ? {} : JSON.parse(text)
      return (parsed as { nftables?: unknown[] }).nftables ?? []
    },
    available: async () => (await exec.run(program, ['list', 'tables'])).code === 0,
  }
}
