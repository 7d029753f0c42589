use csdfc_packing::{Block, Gap, Life};

use super::{BufferRow, CsvError, parse, write};

fn life(lower: i64, upper: i64, bytes: u64) -> Life {
    Life { block: Block::of_bytes(bytes), lower, upper, gaps: Vec::new() }
}

fn row(id: &str, life: Life) -> BufferRow {
    BufferRow { id: id.into(), life }
}

#[test]
fn files_are_read_by_the_names_of_columns() {
    let plain = vec![row("b1", life(0, 3, 4)), row("b2", life(-3, 9, 5))];
    for text in [
        "id,lower,upper,size\nb1,0,3,4\nb2,-3,9,5\n",
        "size,id,upper,lower\r\n4,b1,3,0\r\n\r\n5,b2,9,-3",
        "buffer, begin, end, size, gaps, alignment, offset\nb1, 0, 2, 4,,,\nb2,-3,8,5, ,1,\n",
        "\u{feff}buffer_id,start,upper,size\nb1,0,3,4\nb2,-3,9,5\n",
        "id,lower,upper,size,hint\nb1,0,3,4,-1\nb2,-3,9,5,8\n",
    ] {
        assert_eq!(parse(text), Ok(plain.clone()), "{text}");
    }
    let gap = |lower, upper, window| Gap { lower, upper, window };
    let all = Life {
        block: Block { bytes: 16, alignment: 4, offset: Some(8) },
        gaps: vec![gap(2, 4, Some((0, 2))), gap(6, 9, None)],
        ..life(0, 12, 16)
    };
    let text = "id,lower,upper,size,alignment,gaps,offset\nb,0,12,16,4,6-9 2-4@0:2,8\n";
    assert_eq!(parse(text), Ok(vec![row("b", all.clone())]));
    let inclusive = "id,start,end,size,alignment,gaps,offset\nb,0,11,16,4,2-3@0:2 6-8,8\n";
    assert_eq!(parse(inclusive), Ok(vec![row("b", all)]));
}

#[test]
fn what_is_written_is_read() {
    for (text, expected) in [
        ("id,lower,upper,size\nb1,0,3,4\nb2,3,9,5\n", "id,lower,upper,size,offset\nb1,0,3,4,7\nb2,3,9,5,7\n"),
        (
            "id,lower,upper,size,gaps,alignment\nb1,0,9,4,2-3@1:2 5-6,2\n",
            "id,lower,upper,size,alignment,gaps,offset\nb1,0,9,4,2,2-3@1:2 5-6,7\n",
        ),
    ] {
        let rows = parse(text).unwrap();
        let written = write(&rows, &vec![7; rows.len()]);
        assert_eq!(written, expected);
        if !expected.contains("alignment") {
            let read = parse(&written).unwrap();
            assert!(read.iter().all(|row| row.life.block.offset == Some(7)));
        }
    }
}

#[test]
fn what_is_wrong_is_named_by_line() {
    let head = "id,lower,upper,size,alignment,gaps,offset\n";
    for (text, expected) in [
        (String::new(), "the file is empty"),
        ("\n \n".into(), "the file is empty"),
        ("b1,0,3,4\n".into(), "line 1 names the columns, and there is no column `b1`"),
        ("id,lower,size\n".into(), "line 1: column `upper` is missing"),
        ("id,lower,upper,size,begin\n".into(), "line 1: column `lower` is there twice"),
        (format!("{head}b,0,3\n"), "line 2: 3 values for 7 columns"),
        (format!("{head}\n,0,3,4,,,\n"), "line 3: id `` is empty"),
        (format!("{head}b,0,3,4,,,\nb,0,3,4,,,\n"), "line 3: id `b` is there twice"),
        (format!("{head}b,x,3,4,,,\n"), "line 2: lower `x` is no whole number"),
        (format!("{head}b,4,3,4,,,\n"), "line 2: upper `3` comes before lower"),
        (format!("{head}b,0,99999999999999999999,4,,,\n"), "line 2: upper"),
        (format!("{head}b,0,3,-4,,,\n"), "line 2: size `-4` is no number"),
        (format!("{head}b,0,3,,,,\n"), "line 2: size `` is no number"),
        (format!("{head}b,0,3,4,0,,\n"), "line 2: alignment `0` is no alignment"),
        (format!("{head}b,0,3,4,1,,1.5\n"), "line 2: offset `1.5`"),
        (format!("{head}b,0,9,4,1,2,\n"), "line 2: gaps `2` is no gap"),
        (format!("{head}b,0,9,4,1,2-3@4,\n"), "line 2: gaps `2-3@4` is no gap"),
        (format!("{head}b,0,9,4,1,2-12,\n"), "line 2: gaps `2-12` does not lie within"),
        (format!("{head}b,0,9,4,1,2-5@0:5,\n"), "line 2: gaps `2-5@0:5` has bytes"),
        (format!("{head}b,0,9,4,1,2-5 4-6,\n"), "line 2: gaps `2-5 4-6` overlap"),
    ] {
        let error = parse(&text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text:?}: {error}");
    }
    let end = format!("id,start,end,size\nb,0,{},1\n", i64::MAX);
    assert!(matches!(parse(&end), Err(CsvError::Value { column: "upper", .. })));
    let many: String = (0..=super::MAX_ROWS).map(|i| format!("{i},0,1,1\n")).collect();
    assert_eq!(parse(&format!("id,lower,upper,size\n{many}")), Err(CsvError::TooMany));
}
