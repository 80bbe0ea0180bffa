/** The files of `--config` that may be kubeadm's (L4): they are read whole, and what is left out of them is said. */
import fs from 'node:fs/promises'
import { messageOf } from '#base/messageOf'
import { printable } from '#base/printable'
import { CommandError } from '../exitCodes.ts'
import type { FieldReport } from './fields.ts'

/** @throws CommandError notFound */
export async function readConfigText(file: string): Promise<string> {
  return fs.readFile(file, 'utf8').catch((error) => {
    throw new CommandError('notFound', `--config ${file}: ${messageOf(error)}`)
  })
}

/** What `read` makes of the file, with its warnings printed and its name in front of faults. */
export function withWarnings<T>(file: string, { stderr }: { readonly stderr: { write(text: string): unknown } }, read: (report: FieldReport) => T): T {
  const report: FieldReport = { warnings: [] }
  try {
    const found = read(report)
    for (const warning of report.warnings) stderr.write(`warning: ${printable(`${file}: ${warning}`)}\n`)
    return found
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    throw new CommandError(error.exit, `${file}: ${error.message}`, { cause: error })
  }
}

export const kubeadmGroup = 'kubeadm.k8s.io'

/** Whether a file is one of kubeadm's: it has a document with its group. @param documents all documents of the file */
export function isKubeadmFile(documents: readonly unknown[]): boolean {
  return documents.some((document) => String((document as { apiVersion?: unknown } | null)?.apiVersion ?? '').startsWith(`${kubeadmGroup}/`))
}
