//! NFS's access lists (RFC 7530, section 6), as Linux shows them in `system.nfs4_acl`: nearly every
//! file of such a file system has one, and it may grant more than the permissions.

/// The attribute's name.
pub(super) const NAME: &str = "system.nfs4_acl";

const ALLOWS: u32 = 0;
/// The rights to add a file or a folder, to delete entries, or to grant oneself such rights.
const WRITES: u32 = 0x2 | 0x4 | 0x40 | 0x4_0000 | 0x8_0000;

/// The principals to which the permissions also apply.
const IN_PERMISSIONS: [&[u8]; 3] = [b"OWNER@", b"GROUP@", b"EVERYONE@"];

/// Whether the list of a folder lets a user change its entries whom the folder's permissions do not
/// name. A list that cannot be parsed may do so.
pub(super) fn lets_others_write(list: &[u8]) -> bool {
    others_who_write(list).is_none_or(|count| count > 0)
}

fn others_who_write(mut list: &[u8]) -> Option<usize> {
    let mut number = || -> Option<u32> {
        let (number, rest) = list.split_first_chunk::<4>()?;
        list = rest;
        Some(u32::from_be_bytes(*number))
    };
    let mut found = 0;
    let mut left = number()?;
    while left > 0 {
        let (kind, _flags, rights, length) = (number()?, number()?, number()?, number()?);
        let length = usize::try_from(length).ok()?;
        let mut words = Vec::new();
        for _ in 0..length.div_ceil(4) {
            words.extend(number()?.to_be_bytes());
        }
        let is_other = !IN_PERMISSIONS.contains(&words.get(..length)?);
        found += usize::from(kind == ALLOWS && rights & WRITES != 0 && is_other);
        left -= 1;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list of kinds, rights and names.
    fn list(entries: &[(u32, u32, &str)]) -> Vec<u8> {
        let word = |number: usize| u32::try_from(number).unwrap().to_be_bytes();
        let mut bytes = word(entries.len()).to_vec();
        for (kind, rights, who) in entries {
            for number in [*kind, 0, *rights] {
                bytes.extend(number.to_be_bytes());
            }
            bytes.extend(word(who.len()));
            bytes.extend(who.as_bytes());
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    #[test]
    fn who_is_named_and_may_write_is_found() {
        const ALL: u32 = 0x1f_01ff;
        const READS: u32 = 0x12_00a9;
        let usual = [(0, ALL, "OWNER@"), (0, READS, "GROUP@"), (0, READS, "EVERYONE@")];
        assert!(!lets_others_write(&list(&usual)));
        // The permissions tell of these.
        assert!(!lets_others_write(&list(&[(0, ALL, "OWNER@"), (0, ALL, "GROUP@")])));
        assert!(!lets_others_write(&list(&[usual[0], (0, READS, "it@example.com")])));
        assert!(!lets_others_write(&list(&[(1, ALL, "it@example.com"), usual[0]])));
        for rights in [0x2, 0x4, 0x40, 0x4_0000, 0x8_0000, ALL] {
            assert!(lets_others_write(&list(&[usual[0], (0, rights, "it@example.com")])));
            assert!(lets_others_write(&list(&[(0, rights, "1001"), usual[0]])));
        }
    }

    #[test]
    fn a_list_that_cannot_be_read_may_let_anybody_write() {
        let whole = list(&[(0, 1, "OWNER@"), (0, 1, "EVERYONE@")]);
        for length in 0..whole.len() {
            assert!(lets_others_write(&whole[..length]), "{length}");
        }
        assert!(!lets_others_write(&whole));
        assert!(lets_others_write(&[0xff; 24]), "nothing is allocated by a claimed length");
    }
}
