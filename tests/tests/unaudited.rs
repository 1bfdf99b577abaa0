//! The corpus again, answered without the first-run audit, each statement once: what the engine says by itself. What PostgreSQL
//! refuses has to be refused here, too: behind an audit that a harmless literal has passed, another one raises.

use std::net::SocketAddr;

use freshet_tests::cluster::Cluster;
use freshet_tests::corpus::{Chapter, chapters, connect, connect_through, differs, setup};
use freshet_tests::freshet::Freshet;

#[derive(Default)]
struct Share {
    local: usize,
    refused: usize,
    problems: Vec<String>,
}

fn ask(chapter: &Chapter, direct: SocketAddr, through: SocketAddr, database: &str) -> Share {
    let (mut direct, mut through) = (connect(direct, database), connect_through(through, database));
    let mut share = Share::default();
    for sql in &chapter.statements {
        let expected = direct.simple(sql).expect("answers");
        let got = through.simple(sql).expect("answers");
        let (route, _) = through.last().expect("answers");
        share.local += usize::from(route == "local");
        share.refused += usize::from(expected.error().is_some());
        if let Some(difference) = differs(&expected, &got) {
            share.problems.push(format!("{sql}: {route}: {difference}"));
        }
    }
    share
}

#[test]
fn the_engine_by_itself_has_upstreams_answers() {
    freshet::session::local::patient::want();
    let cluster = Cluster::shared();
    let database = setup(cluster);
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    let chapters = chapters();
    let shares: Vec<Share> = std::thread::scope(|scope| {
        let ask = |chapter| ask(chapter, cluster.address(), freshet.address(), &database);
        let threads: Vec<_> = chapters.iter().map(|chapter| scope.spawn(move || ask(chapter))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a chapter")).collect()
    });
    for (chapter, share) in chapters.iter().zip(&shares) {
        let all = chapter.statements.len();
        println!("{}: {all} statements, {} refused, {} answered here", chapter.name, share.refused, share.local);
        let answered = all - share.refused;
        assert!(share.local <= answered, "{}", chapter.name);
        assert!(share.local * 10 >= answered * 8 || chapter.name == "11-refused", "{}: too few", chapter.name);
    }
    let problems: Vec<&String> = shares.iter().flat_map(|share| &share.problems).collect();
    assert!(problems.is_empty(), "{} differ: {problems:#?}", problems.len());
}
