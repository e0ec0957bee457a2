package org.example.library.service;

import java.time.LocalDate;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

public final class LoanService {
    private static final int MAX_OPEN_LOANS = 12;
    private final LoanRepository loanRepository;
    private final NotificationGateway notificationGateway;

    public LoanService(LoanRepository loanRepository, NotificationGateway notificationGateway) {
        this.loanRepository = loanRepository;
        this.notificationGateway = notificationGateway;
    }

    public Optional<Loan> lend(Member member, Book book, LocalDate today) {
        List<Loan> openLoans = loanRepository.findOpenByMember(member.getId());
        if (openLoans.size() >= MAX_OPEN_LOANS || openLoans.stream().anyMatch(loan -> loan.isOverdue(today))) {
            return Optional.empty();
        }
        Loan loan = Loan.builder().member(member).book(book).from(today).until(today.plusWeeks(4)).build();
        loanRepository.save(loan);
        return Optional.of(loan);
    }

    public List<String> overdueTitles(LocalDate today) {
        return loanRepository.findAll().stream()
                .filter(loan -> loan.isOverdue(today))
                .sorted(Comparator.comparing(Loan::getUntil).thenComparing(Loan::getId))
                .map(loan -> String.format("%s (%d days)", loan.getBook().getTitle(), loan.daysOverdue(today)))
                .collect(Collectors.toUnmodifiableList());
    }
}
