/** Reads the file with keys that AWS's programs share (L5), pure: sections of `name = value` lines. */

export interface AwsCredentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
}

/** Undefined when the profile is missing or has no pair of keys. */
export function credentialsOf(text: string, profile: string): AwsCredentials | undefined {
  const values = new Map<string, string>()
  let section = ''
  for (const line of text.split(/\r?\n/).map((one) => one.trim())) {
    if (line === '' || /^[#;]/.test(line)) continue
    const header = /^\[\s*(.*?)\s*\]$/.exec(line)?.[1]
    if (header !== undefined) section = header
    else if (section === profile && line.includes('=')) values.set(line.slice(0, line.indexOf('=')).trim(), line.slice(line.indexOf('=') + 1).trim())
  }
  const [accessKeyId, secretAccessKey] = [values.get('aws_access_key_id'), values.get('aws_secret_access_key')]
  if (!accessKeyId || !secretAccessKey) return undefined
  const sessionToken = values.get('aws_session_token')
  return { accessKeyId, secretAccessKey, ...(sessionToken ? { sessionToken } : {}) }
}
